// The runs of a home -> a list, those that need a person first, and a form that starts one.
import { fill, h } from "./dom.js";
import { ask, homeAddress, post, runAddress } from "./source.js";
import { STATUS_WORDS, age, count, cut, money } from "./words.js";

const EVERY_MS = 2000;

export async function showRuns(main) {
  let shown = "";
  let before = null;
  let older = [];
  const words = h("input", { type: "search", placeholder: "Find runs", "aria-label": "Find runs", oninput: () => refresh(true) });
  const status = h("select", { "aria-label": "Status", onchange: () => refresh(true) },
    h("option", { value: "" }, "Every status"), Object.entries(STATUS_WORDS).map(([value, name]) => h("option", { value }, name)));
  const list = h("div", { class: "runs", role: "list" });
  const note = h("p", { class: "quiet", role: "status" });
  const more = h("button", { type: "button", hidden: true, onclick: () => loadOlder() }, "Older runs");
  fill(main, h("p", { class: "eyebrow" }, h("a", { class: "brand", href: homeAddress }, "chargehand")), h("h1", {}, "Runs"), await startForm(),
    h("section", {}, h("div", { class: "filter" }, words, status), list, note, more));

  const query = (extra = {}) => new URLSearchParams(Object.entries({ q: words.value.trim(), status: status.value, needs_you: "true", limit: 50, ...extra })
    .filter(([, value]) => value !== "")).toString();

  async function refresh(fresh = false) {
    try {
      if (fresh) older = [];
      const found = await ask(`/runs?${query()}`);
      const runs = [...found.runs, ...older.filter((run) => !found.runs.some((each) => each.run === run.run))];
      if (!older.length) before = found.next;
      more.hidden = !before;
      note.textContent = runs.length ? "" : words.value || status.value ? "No run fits." : "No runs yet. Start one above, or with: chargehand run \"…\"";
      const version = JSON.stringify(runs);
      if (version === shown) return;
      shown = version;
      fill(list, runs.map(row));
    } catch (error) {
      note.textContent = error.message;
    }
  }

  async function loadOlder() {
    const found = await ask(`/runs?${query({ before })}`);
    older = [...older, ...found.runs];
    before = found.next;
    more.hidden = !before;
    refresh();
  }

  await refresh();
  setInterval(() => document.hidden || refresh(), EVERY_MS);
}

function row(run) {
  const needs = run.needs_you ?? run.status === "waiting";
  const progress = run.tasks ? `${count(run.done ?? 0)} of ${count(run.tasks)} tasks` : "";
  return h("a", { class: `run${needs ? " needs" : ""}`, href: runAddress(run.run), role: "listitem" },
    h("span", { class: `pill r-${/^[a-z]+$/.test(run.status) ? run.status : "failed"}` }, needs ? "Needs you" : STATUS_WORDS[run.status] ?? run.status),
    h("span", { class: "asked" }, cut(run.request ?? "", 160), h("small", {}, [run.team, progress, run.gaps ? `${run.gaps} gaps` : ""].filter(Boolean).join(" · "))),
    h("span", { class: "nums" }, [run.tokens ? `${count(run.tokens)} tokens` : "", run.usd === undefined ? "" : `cost ${money(run.usd)}`].filter(Boolean).join(" · "),
      h("small", {}, run.started ? age(Date.now() / 1000 - run.started) : "")));
}

async function startForm() {
  const teams = await ask("/teams").catch(() => ({ teams: [] }));
  const request = h("textarea", { name: "request", rows: 3, required: true, placeholder: "What should be done?", "aria-label": "Request" });
  const team = h("select", { name: "team" }, h("option", { value: "" }, "The default team"), (teams.teams ?? []).map((each) => h("option", { value: each.name }, each.name)));
  const files = h("input", { type: "file", multiple: true });
  const tokens = h("input", { type: "number", min: 1, placeholder: "500000" });
  const usd = h("input", { type: "number", min: 0, step: "any" });
  const approve = h("input", { type: "checkbox" });
  const note = h("p", { class: "quiet", role: "status" });
  const start = async (event) => {
    event.preventDefault();
    try {
      const material = await Promise.all([...files.files].map(async (file) => ({ name: file.name, content: await file.text() })));
      const made = await post("/runs", {
        request: request.value, approve: approve.checked, ask: true,
        ...(team.value ? { team: team.value } : {}), ...(material.length ? { material } : {}),
        ...(tokens.value ? { tokens: Number(tokens.value) } : {}), ...(usd.value ? { usd: Number(usd.value) } : {}),
      });
      location.assign(runAddress(made.run));
    } catch (error) {
      note.textContent = [error.message, ...(error.problems ?? []).map((each) => each.message)].join(" ");
    }
  };
  return h("section", {}, h("details", { class: "start" }, h("summary", {}, h("h2", {}, "Start a run")),
    h("form", { class: "fields", onsubmit: start }, request,
      h("label", {}, "Team", team), h("label", {}, "Files", files), h("label", {}, "At most tokens", tokens), h("label", {}, "At most dollars", usd),
      h("label", { class: "check" }, approve, "Show me the plan before it runs"),
      h("div", { class: "buttons" }, h("button", { type: "submit", class: "main" }, "Start")), note)));
}
