// The runs of a home -> a list, the questions of those that need a person above it, and a form that starts one.
import { fill, h } from "./dom.js";
import { needsYou } from "./questions.js";
import { ask, homeAddress, openRun, post, runAddress } from "./source.js";
import { STATUS_WORDS, age, compact, count, cut, money, several, statusWords } from "./words.js";

const EVERY_MS = 2000;
// Runs that are listed at first, and that each "Older runs" adds; and the most that the server gives in one answer.
const PAGE = 50;
const MOST_AT_ONCE = 500;
// Runs whose questions are shown at once.
const MOST_ASKING = 8;

const NOTHING = ["No runs yet. Start one above, or in a terminal with ", h("code", {}, 'chargehand run "…"'), ". To see one without a model: ", h("code", {}, "chargehand demo"), "."];

export async function showRuns(main) {
  let shown = "";
  let wanted = PAGE;
  let turn = 0;
  const show = (number) => {
    wanted = number;
    return refresh();
  };
  const words = h("input", { type: "search", placeholder: "Find runs", "aria-label": "Find runs", oninput: () => show(PAGE) });
  const status = h("select", { "aria-label": "Status", onchange: () => show(PAGE) },
    h("option", { value: "" }, "Every status"), Object.entries(STATUS_WORDS).map(([value, name]) => h("option", { value }, name)));
  const list = h("div", { class: "runs", role: "list" });
  const note = h("p", { class: "quiet", role: "status" });
  const more = h("button", { type: "button", hidden: true, onclick: () => show(wanted + PAGE) }, "Older runs");
  const inbox = makeInbox();
  const filter = h("div", { class: "filter" }, words, status);
  fill(main, h("p", { class: "eyebrow" }, h("a", { class: "brand", href: homeAddress }, "chargehand")), h("h1", {}, "Runs"), inbox.box, await startForm(),
    h("section", {}, filter, list, note, more));

  /** The runs to show, and whether there are more. They are read together: what came, ended or was answered moves the others. */
  async function load() {
    const runs = new Map();
    let before = "";
    do {
      const asked = { q: words.value.trim(), status: status.value, needs_you: "true", limit: Math.min(wanted - runs.size, MOST_AT_ONCE), before };
      const found = await ask(`/runs?${new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== ""))}`);
      for (const run of found.runs) runs.set(run.run, run);
      before = found.next;
    } while (before && runs.size < wanted);
    return [[...runs.values()], Boolean(before)];
  }

  async function refresh() {
    const own = (turn += 1);
    try {
      const [runs, hasMore] = await load();
      if (own !== turn) return; // another refresh has begun, which knows what is looked for now
      more.hidden = !hasMore;
      if (!shown && !runs.length && !words.value && !status.value) main.querySelector(".start").open = true;
      filter.hidden = !runs.length && !words.value && !status.value;
      fill(note, runs.length ? "" : filter.hidden ? NOTHING : "No run fits.");
      const version = JSON.stringify(runs);
      if (version !== shown) fill(list, runs.map(row));
      shown = version;
      // What is looked for does not change who needs a person.
      if (!words.value && !status.value) await inbox.update(runs.filter(needsPerson));
    } catch (error) {
      if (own === turn) note.textContent = error.message;
    }
  }

  async function refreshAgain() {
    if (!document.hidden) await refresh();
    setTimeout(refreshAgain, EVERY_MS);
  }

  await refresh();
  setTimeout(refreshAgain, EVERY_MS);
}

/** The open questions of all runs that wait for a person, each to be answered where it is. */
function makeInbox() {
  const list = h("div", {});
  const title = h("h2", {});
  const others = h("p", { class: "quiet" });
  const box = h("div", { class: "inbox", hidden: true }, title, list, others);
  const shown = new Map();
  // How each run was listed when its questions were read: until that changes they are the same.
  const listed = new Map();
  let updates = 0;

  function add(run) {
    const questions = needsYou(openRun(run.run));
    const about = [h("span", {}, cut(run.request || run.run, 120)), h("small", {}, [run.team, run.started ? age(Date.now() / 1000 - run.started) : ""].filter(Boolean).join(" · "))];
    // Of many only the first is open, so that all are in sight.
    const entry = { questions, box: h("details", { class: "asking", open: !shown.size }, h("summary", {}, about), questions.box, h("a", { class: "here", href: runAddress(run.run) }, "Open the run")) };
    shown.set(run.run, entry);
    list.append(entry.box);
    return entry;
  }

  return {
    box,
    async update(waiting) {
      const own = (updates += 1);
      const asked = waiting.slice(0, MOST_ASKING);
      const changed = asked.filter((run) => listed.get(run.run) !== JSON.stringify(run));
      const states = await Promise.all(changed.map((run) => openRun(run.run).state(Number.MAX_SAFE_INTEGER)));
      if (own !== updates) return;
      for (const [id, entry] of shown) {
        if (asked.some((run) => run.run === id)) continue;
        entry.box.remove();
        shown.delete(id);
        listed.delete(id);
      }
      for (const [index, run] of changed.entries()) {
        const state = states[index];
        const entry = shown.get(run.run) ?? (state.questions.length ? add(run) : null);
        entry?.questions.update(state);
        if (entry) entry.box.hidden = !state.questions.length;
        listed.set(run.run, JSON.stringify(run));
      }
      title.textContent = `${several(waiting.length, "run")} ${waiting.length === 1 ? "needs" : "need"} you`;
      others.textContent = waiting.length > asked.length ? `${several(waiting.length - asked.length, "more run")} below.` : "";
      box.hidden = !shown.size;
    },
  };
}

/** A run that waits may also wait for a provider, or to be resumed. */
const needsPerson = (run) => run.needs_you;

function row(run) {
  const needs = needsPerson(run);
  const { tasks, done, tokens, usd, gaps, budget } = run.figures ?? {};
  const progress = tasks ? `${count(done)} of ${several(tasks, "task")}` : "";
  const spent = tokens ? [`${compact(tokens)}${budget.tokens ? ` of ${compact(budget.tokens)}` : ""} tokens`, usd === null ? "cost unknown" : `${money(usd)}${budget.usd ? ` of ${money(budget.usd)}` : ""}`] : [];
  return h("a", { class: `run${needs ? " needs" : ""}`, href: runAddress(run.run), role: "listitem" },
    h("span", { class: `pill r-${/^[a-z]+$/.test(run.status) ? run.status : "failed"}` }, needs ? "Needs you" : statusWords(run)),
    h("span", { class: "asked" }, cut(run.request ?? "", 160), h("small", {}, [run.team, progress, gaps ? several(gaps, "gap") : ""].filter(Boolean).join(" · "))),
    h("span", { class: "nums" }, spent.flatMap((each, index) => [index ? " · " : "", h("span", {}, each)]),
      h("small", {}, run.started ? age(Date.now() / 1000 - run.started) : "")));
}

async function startForm() {
  const [teams, models] = await Promise.all([ask("/teams").catch(() => ({ teams: [] })), ask("/models").catch(() => ({ offered: [] }))]);
  const request = h("textarea", { name: "request", rows: 3, required: true, placeholder: "What should be done?", "aria-label": "Request" });
  const team = h("select", { name: "team" }, h("option", { value: "" }, "The default team"), (teams.teams ?? []).map((each) => h("option", { value: each.name }, each.name)));
  const model = h("select", { name: "model" }, h("option", { value: "" }, "The default model"), (models.offered ?? []).map((name) => h("option", { value: name }, name)));
  const files = h("input", { type: "file", multiple: true });
  const tokens = h("input", { type: "number", min: 1, placeholder: "500000" });
  const usd = h("input", { type: "number", min: 0, step: "any" });
  const deadline = h("input", { type: "number", min: 1, step: "any" });
  const approve = h("input", { type: "checkbox" });
  const people = h("input", { type: "checkbox" });
  const note = h("p", { class: "quiet", role: "status" });
  const start = async (event) => {
    event.preventDefault();
    try {
      const material = await Promise.all([...files.files].map(async (file) => ({ name: file.name, content: await file.text() })));
      const made = await post("/runs", {
        request: request.value, approve: approve.checked, ask: people.checked,
        ...(team.value ? { team: team.value } : {}), ...(model.value ? { model: model.value } : {}), ...(material.length ? { material } : {}),
        ...(tokens.value ? { tokens: Number(tokens.value) } : {}), ...(usd.value ? { usd: Number(usd.value) } : {}),
        ...(deadline.value ? { deadline: Number(deadline.value) } : {}),
      });
      location.assign(runAddress(made.run));
    } catch (error) {
      note.textContent = [error.message, ...(error.problems ?? []).map((each) => each.message)].join(" ");
    }
  };
  return h("section", {}, h("details", { class: "start" }, h("summary", {}, h("h2", {}, "Start a run")),
    h("form", { class: "fields", onsubmit: start }, request,
      h("label", {}, "Team", team), h("label", {}, "Model", model), h("label", {}, "Files", files),
      h("label", {}, "At most tokens", tokens), h("label", {}, "At most dollars", usd), h("label", {}, "At most seconds", deadline),
      h("label", { class: "check" }, approve, "Show me the plan before it runs"),
      h("label", { class: "check" }, people, "Ask me when a worker cannot go on"),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "main" }, "Start")), note)));
}
