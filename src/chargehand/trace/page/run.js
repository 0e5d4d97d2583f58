// One run -> its page: drawn from its state, drawn again as events come, steered by the keyboard and by the address.
import { actions, actionsVersion } from "./actions.js";
import { fill, h, onceAFrame } from "./dom.js";
import { drawer as makeDrawer } from "./drawer.js";
import { graph as makeGraph } from "./graph.js";
import { log as makeLog } from "./log.js";
import { needsYou } from "./questions.js";
import * as report from "./report.js";
import { homeAddress, isLive, openRun, runAddress } from "./source.js";
import { timeline as makeTimeline } from "./timeline.js";
import { count, cut, moment, sentence, several, statusWords } from "./words.js";

const CHAIN = "longest chain of calls";

// Characters of the request that the heading has.
const LONG_TITLE = 160;
// Strategy of a plan -> what that means for its tasks.
const SHAPES = { single: "one task", sequential: "tasks one after another", parallel: "all tasks in parallel", hybrid: "some tasks in parallel" };

export async function showRun(main, id) {
  const source = openRun(id);
  const state = { tasks: new Map() };
  let draft = null;
  let connected = true;
  const closeTask = () => {
    history.replaceState(null, "", location.pathname + location.search);
    follow();
  };
  const drawer = makeDrawer(source, closeTask);
  const timeline = makeTimeline((task) => { location.hash = `task/${task}`; });
  const graph = makeGraph();
  const log = makeLog(source);
  const questions = needsYou(source);
  const places = Object.fromEntries(["head", "actions", "figures", "first", "answer", "rest", "notes"].map((name) => [name, h("div", {})]));
  const live = h("p", { class: "sr-only", "aria-live": "polite" });
  const work = workSection(timeline, graph);
  fill(main, places.head, places.actions, live, questions.box, places.first, places.figures, places.answer, places.rest, work.box, places.notes, log.box);
  document.body.append(drawer.box);

  function take(newer) {
    const { tasks, ...rest } = newer;
    const before = state.status;
    Object.assign(state, rest);
    for (const task of tasks) state.tasks.set(task.id, { ...task, recorded: task.status });
    for (const task of state.tasks.values()) task.status = state.begun[task.id] ?? task.recorded;
    const asks = new Set(state.questions.map((question) => question.id));
    for (const task of state.tasks.values()) {
      const name = task.id.replace(/\/\d+\//g, ".");
      task.asks = asks.size > 0 && (asks.has(name) || state.questions.some((question) => question.kind === "tool" && question.id.startsWith(`${name}-`)));
    }
    state.order ??= [...state.tasks.keys()];
    const skew = newer.now ? newer.now - Date.now() / 1000 : null;
    state.now = () => (skew === null ? state.last_event : Date.now() / 1000 + skew);
    if (before && before !== state.status) tell(statusWords(state));
  }

  function tell(words) {
    live.textContent = words;
    if (document.hidden && window.Notification?.permission === "granted" && state.status !== "running") {
      new Notification(`chargehand: ${words}`, { body: cut(state.request, 120), tag: state.run });
    }
  }

  const drawn = {};
  /** Draw a part again only if what it shows has changed. */
  function redraw(name, version, make) {
    if (drawn[name] === version) return;
    drawn[name] = version;
    fill(places[name], make());
  }

  function draw() {
    document.title = `${state.status === "running" ? "" : `${statusWords(state)} · `}${cut(state.request || state.run, 80)} · chargehand`;
    const said = sentence(state);
    redraw("head", JSON.stringify([state.status, said, connected, state.sessions.length]), () => head(state, said, connected));
    if (isLive) redraw("actions", actionsVersion(state), () => actions(source, state));
    fill(places.figures, report.figures(state));
    const findingsFirst = Boolean(state.findings_first);
    const version = JSON.stringify([state.report, state.status, draft, state.notes]);
    redraw("first", `${version}${findingsFirst}`, () => (findingsFirst ? [report.findings(state)] : []));
    redraw("answer", version, () => [report.answer(state, draft)]);
    redraw("rest", version, () => [report.gaps(state), report.contradictions(state), findingsFirst ? null : report.findings(state)]);
    redraw("notes", version, () => [report.notes(state)]);
    questions.update(state);
    work.update(state);
    log.update(state);
    if (drawer.task) follow();
  }

  function follow() {
    const [kind, rest] = [location.hash.slice(1).split("/")[0], decodeURIComponent(location.hash.slice(location.hash.indexOf("/") + 1))];
    if (kind === "event") {
      log.show(Number(rest));
      return;
    }
    const [, id, attempt] = kind === "task" ? rest.match(/^(.*?)(?:@(\d+))?$/) : [];
    const task = id && state.tasks.get(id);
    document.body.classList.toggle("with-drawer", Boolean(task));
    if (task) drawer.show(task, attempt, state);
    else drawer.hide();
  }

  fill(places.head, brandLine(), h("p", { class: "quiet" }, "Reading the record …"));
  take(await source.state());
  draw();
  follow();
  addEventListener("hashchange", follow);
  keyboard(timeline, work, closeTask);
  if (!isLive) return;

  const redrawSoon = onceAFrame(draw);
  let asking = false;
  let again = false;
  async function refresh() {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    try {
      take(await source.state(state.seq));
      redrawSoon();
    } catch (error) {
      live.textContent = error.message;
    } finally {
      asking = false;
      if (again) {
        again = false;
        refresh();
      }
    }
  }
  source.watch(state.seq, {
    events(events) {
      log.take(events);
      if (events.some((event) => event.seq > state.seq)) refresh();
    },
    draft(part) {
      if (part.role && part.role !== "synthesizer") return;
      draft = part.discarded ? null : (draft ?? "").slice(0, part.offset) + (part.text ?? part.delta ?? "");
      redrawSoon();
    },
    connected(is) {
      if (is && !connected) refresh();
      connected = is;
      redrawSoon();
    },
  });
  setInterval(() => state.status === "running" && connected && redrawSoon(), 1000);
}

const runLink = (run) => (isLive ? h("a", { href: runAddress(run) }, run) : run);
const forked = ({ run, at }) => ["forked from ", runLink(run), at ? ` at ${at}` : ""];

/** The way to all runs, and what follows it. */
export const brandLine = (...rest) =>
  h("p", { class: "eyebrow" }, isLive ? h("a", { class: "brand", href: homeAddress }, "chargehand", h("span", {}, " / runs")) : h("span", { class: "brand" }, "chargehand"), rest);

function head(state, said, connected) {
  const facts = [
    `run ${state.run}`, state.forked_from ? forked(state.forked_from) : "", state.team ? `team ${state.team}` : "", SHAPES[state.strategy] ?? "",
    state.started ? moment(state.started) : "", state.sessions.length > 1 ? several(state.sessions.length, "session") : "",
    state.rerun_of ? ["repeats ", runLink(state.rerun_of)] : "",
  ].filter(Boolean);
  return [
    brandLine(
      h("span", { class: `pill r-${/^[a-z]+$/.test(state.status) ? state.status : "failed"}` }, statusWords(state)),
      isLive && !connected ? h("span", { class: "pill r-interrupted" }, "Not connected: trying again") : null),
    h("h1", {}, state.request.length > LONG_TITLE ? cut(state.request, LONG_TITLE).replace(/\s\S*…$/, " …") : state.request || "A run without a request"),
    state.request.length > LONG_TITLE ? h("details", { class: "whole" }, h("summary", {}, "The whole request"), h("p", {}, state.request)) : null,
    h("p", { class: "sentence" }, said),
    h("p", { class: "facts" }, facts.flatMap((fact, index) => [index ? " · " : "", h("span", {}, fact)])),
  ];
}

/** The tasks as a timeline or as a graph, with a filter. */
function workSection(timeline, graph) {
  let form = "timeline";
  let state = null;
  const statuses = new Set();
  const words = h("input", { type: "search", placeholder: "Find tasks", "aria-label": "Find tasks", oninput: () => timeline.filter(words.value, statuses) });
  const chips = h("span", { class: "chips" });
  const holder = h("div", {});
  const toggle = h("button", { type: "button", onclick: () => swap() }, "Graph");
  const legend = h("p", { class: "legend" });
  const tools = h("div", { class: "filter" }, words, chips, toggle, graph.tools);
  const box = h("section", { class: "work", hidden: true }, h("h2", {}, "Tasks"), tools, legend, holder);
  let drawnChips = "";
  let drawnLegend = "";

  function swap() {
    form = form === "timeline" ? "graph" : "timeline";
    toggle.textContent = form === "timeline" ? "Graph" : "Timeline";
    drawForm();
  }

  function drawForm() {
    const shown = form === "timeline" ? timeline : graph;
    if (holder.firstChild !== shown.box) fill(holder, shown.box);
    words.hidden = chips.hidden = form === "graph";
    graph.tools.hidden = form === "timeline";
    drawLegend();
    shown.update(state);
  }

  function drawChips() {
    const version = JSON.stringify([state.counts, [...statuses]]);
    if (version === drawnChips) return;
    drawnChips = version;
    fill(chips, Object.entries(state.counts).map(([status, number]) => h("button", {
      type: "button", "aria-pressed": String(statuses.has(status)), onclick: () => {
        if (!statuses.delete(status)) statuses.add(status);
        drawChips();
        timeline.filter(words.value, statuses);
      },
    }, `${status} ${count(number)}`)));
  }

  /** Only what the timeline has, or the graph. */
  function drawLegend() {
    const tasks = [...state.tasks.values()];
    const hasChain = state.graph?.critical.length > 1;
    const kinds = (form === "graph" ? [["chain", CHAIN, hasChain]] : [
      ["waiting", "waiting", tasks.some((task) => (task.ready !== null && (task.started ?? Infinity) - task.ready > state.elapsed_s / 100) || task.calls.some(([, , , , , waits]) => waits.some(([from, to]) => to === null || to - from > state.elapsed_s / 100)))],
      ["attempt", "attempt", tasks.some((task) => task.attempts.length)],
      ["failed", "attempt that failed", tasks.some((task) => task.attempts.some(([, , , status]) => status === "failed"))],
      ["escalated", "attempt that escalated", tasks.some((task) => task.attempts.some(([, , , status]) => status === "escalated"))],
      ["model", "model call", state.usage.calls > 0 || tasks.some((task) => task.calls.some(([kind]) => kind === "model"))],
      ["tool", "tool call", tasks.some((task) => task.calls.some(([kind]) => kind === "tool"))],
      ["bad", "call that failed", tasks.some((task) => task.calls.some(([, , started, , status, waits]) => status === "bad" || waits.some(([since]) => since >= started))) || state.supervisor.some(([, , , , status]) => status === "bad")],
      ["critical", CHAIN, hasChain],
    ]).filter(([, , is]) => is);
    const version = kinds.map(([kind]) => kind).join();
    if (version === drawnLegend) return;
    drawnLegend = version;
    fill(legend, kinds.map(([kind, name]) => h("span", { class: `k-${kind}`, title: name === CHAIN ? "The tasks, one after another, whose calls took longest in all; waiting does not count" : null }, name)));
  }

  return {
    box,
    swap,
    find: () => words.focus(),
    update(newer) {
      state = newer;
      box.hidden = !state.tasks.size && !state.supervisor.length;
      tools.hidden = state.tasks.size < 2;
      drawChips();
      drawForm();
    },
  };
}

function keyboard(timeline, work, close) {
  const help = h("dialog", { class: "help", "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", {},
    [["j, k", "next, previous task"], ["Enter", "open the task"], ["/", "find tasks"], ["g", "graph or timeline"], ["Esc", "close"], ["?", "this list"]]
      .map(([key, words]) => [h("dt", {}, key), h("dd", {}, words)])));
  document.body.append(help);
  const menus = () => [...document.querySelectorAll(".menu[open]")];
  addEventListener("click", (event) => menus().filter((menu) => !menu.contains(event.target)).forEach((menu) => { menu.open = false; }));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      const [menu] = menus();
      if (help.open) help.close();
      else if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      else if (!event.target.closest?.("textarea, input")) close();
      return;
    }
    if (event.target.closest?.("textarea, input, select")) return;
    const act = { j: () => timeline.move(1), k: () => timeline.move(-1), "/": work.find, g: work.swap, "?": () => help.showModal() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}
