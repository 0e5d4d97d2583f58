// The tasks of a run -> rows with one bar per attempt; waiting is a dotted line, work a bar; long fan-outs are grouped.
import { clockOf, secondsOf } from "./clock.js";
import { h, fill, virtualList } from "./dom.js";
import { GLYPHS, count, cut, duration } from "./words.js";

const ROW = 30;
const SMALLEST_GROUP = 12;
// Pixels that "resumed 12 times" takes.
const ROOM_FOR_WORDS = 110;

export function timeline(open) {
  let state = null;
  let clock = null;
  let rows = [];
  let critical = new Set();
  let current = -1;
  const unfolded = new Set();
  const filter = { words: "", statuses: new Set() };
  const track = h("span", { class: "track" });
  const axis = h("div", { class: "axis", "aria-hidden": "true" }, track);
  const list = virtualList(ROW, (index) => drawRow(rows[index], index), "Tasks");
  const none = h("p", { class: "quiet", hidden: true }, "No task has these words.");
  const box = h("div", { class: "timeline" }, axis, list.box, none);

  function drawRow(row, index) {
    if (row.group) return groupRow(row);
    if (row.calls) return supervisorRow(row);
    const { task } = row;
    const took = task.reused ? "reused" : task.started === null || task.asks ? "" : duration(secondsOf(task, clock));
    const word = task.asks ? "needs you" : task.status === "done" ? "" : task.status;
    const isCritical = critical.has(task.id);
    return h("a", {
      class: `row s-${task.status}${task.asks ? " asks" : ""}${isCritical ? " critical" : ""}${index === current ? " current" : ""}`,
      href: `#task/${task.id}`,
      title: `${task.id} · ${task.worker} · ${task.status}${task.doing && task.status === "running" ? ` · ${task.doing}` : ""}\n${task.says}`,
    },
    h("span", { class: "name" }, indent(task.depth), h("b", {}, cut(task.label, 40)), " ", h("i", {}, task.worker)),
    h("span", { class: "track" }, taskMarks(task)),
    h("span", { class: "tail" }, `${task.asks ? "◆" : GLYPHS[task.status]} `, word ? h("span", { class: took ? "word" : "" }, word, took ? " · " : "") : null, took));
  }

  const indent = (depth) => (depth ? h("span", { class: "in" }, "· ".repeat(Math.min(depth, 4))) : null);

  function place(mark, from, to) {
    const left = clock.percent(from);
    mark.style.left = `${left}%`;
    mark.style.width = `max(${clock.percent(to) - left}%, 2px)`;
    return mark;
  }

  function taskMarks(task) {
    const marks = [];
    let waits = task.ready;
    for (const [, started, ended, status] of task.attempts) {
      if (waits !== null && started > waits) marks.push(place(h("s", { class: "wait" }), waits, started));
      marks.push(place(h("s", { class: `attempt s-${GLYPHS[status] ? status : "failed"}` }), started, ended));
      waits = ended;
    }
    if (!task.attempts.length && task.ready !== null && task.ended === null) {
      marks.push(place(h("s", { class: "wait" }), task.ready, null));
    }
    for (const call of task.calls.slice(-200)) marks.push(callMark(call));
    return marks;
  }

  /** A bar for each time that the call was sent, and a dotted line for each wait. */
  function callMark([kind, name, started, ended, status, waits]) {
    const bar = (from, to, result, words) => place(h("s", { class: `call ${kind} ${result}`, title: `${kind} call${words}: ${name}` }), from, to);
    const wait = ([from, to]) => place(h("s", { class: "wait", title: from < started ? "waits for its turn: for a slot, for budget, or until the provider takes calls" : "waits to be sent again" }), from, to);
    const marks = waits.map(wait);
    let sent = started;
    for (const [from, to] of waits.filter(([since]) => since >= started)) {
      marks.push(bar(sent, from, "bad", " that failed and was sent again"));
      sent = to;
    }
    return sent === null ? marks : [...marks, bar(sent, ended, status, status === "bad" ? " that failed" : "")];
  }

  function supervisorRow(row) {
    return h("div", { class: "row supervisor" },
      h("span", { class: "name" }, h("b", {}, row.name), " ", h("i", {}, "supervisor")),
      h("span", { class: "track" }, row.calls.flatMap(callMark)),
      h("span", { class: "tail" }, ""));
  }

  function groupRow(row) {
    const counts = {};
    for (const task of row.group) {
      const status = task.asks ? "needs you" : task.status;
      counts[status] = (counts[status] ?? 0) + 1;
    }
    const each = Object.entries(counts).map(([status, number]) => [`${GLYPHS[status] ?? "◆"} `, count(number), ` ${status}`]);
    const whole = each.map((parts) => parts.join("")).join("  ");
    const said = each.map(([glyph, number, word], index) => [index ? "  " : "", glyph, number, each.length === 1 ? h("span", { class: "word" }, word) : ""]);
    const marks = ["done", "running", "escalated", "failed"].flatMap((status) => {
      const of = row.group.filter((task) => task.status === status && task.started !== null);
      if (!of.length) return [];
      const first = Math.min(...of.map((task) => task.started));
      const ended = of.some((task) => task.ended === null) ? null : Math.max(...of.map((task) => task.ended));
      return [place(h("s", { class: `attempt s-${status}` }), first, ended)];
    });
    const isOpen = unfolded.has(row.id);
    return h("button", {
      class: "row group", type: "button", "aria-expanded": String(isOpen),
      onclick: () => {
        if (isOpen) unfolded.delete(row.id);
        else unfolded.add(row.id);
        update(state);
      },
    },
    h("span", { class: "name" }, indent(row.group[0].depth), isOpen ? "▾ " : "▸ ", h("b", {}, `${count(row.group.length)} ×`), " ", h("i", {}, row.group[0].worker)),
    h("span", { class: "track" }, marks),
    h("span", { class: "tail", title: whole, "aria-label": whole }, said));
  }

  const fits = (task) =>
    (!filter.statuses.size || filter.statuses.has(task.status)) &&
    (!filter.words || `${task.id} ${task.worker} ${task.says}`.toLowerCase().includes(filter.words));

  function arrange() {
    const planning = state.supervisor.filter(([, role]) => role === "planner" || role === "router");
    const later = state.supervisor.filter(([, role]) => role !== "planner" && role !== "router");
    const tasks = state.order.map((id) => state.tasks.get(id)).filter(Boolean);
    const chosen = filter.words || filter.statuses.size ? tasks.filter(fits) : null;
    rows = [];
    if (chosen) {
      rows = chosen.map((task) => ({ task }));
      return;
    }
    if (planning.length) rows.push({ name: "planner", calls: planning });
    const groups = groupsOf(tasks);
    for (const task of tasks) {
      const group = groups.get(task.id);
      if (!group) rows.push({ task });
      else if (group[0] === task) {
        rows.push({ group, id: task.id });
        const shown = unfolded.has(task.id) ? group : group.filter((each) => each.status === "failed" || each.status === "escalated" || each.asks);
        rows.push(...shown.map((each) => ({ task: each })));
      }
    }
    if (later.length) rows.push({ name: "synthesizer", calls: later });
  }

  /** Tasks of one worker that wait for equally many tasks before them, when there are many: by the id of each. */
  function groupsOf(tasks) {
    const groups = new Map();
    if (tasks.length <= 2 * SMALLEST_GROUP) return groups;
    const levels = new Map();
    const alike = new Map();
    tasks.forEach((task, index) => {
      const level = Math.max(-1, ...task.after.map((id) => levels.get(id) ?? -1)) + 1;
      levels.set(task.id, level);
      if (tasks[index + 1]?.depth > task.depth) return; // the tasks of its team come right after it
      const key = JSON.stringify([task.depth ? task.id.slice(0, task.id.lastIndexOf("/")) : "", task.worker, level]);
      if (!alike.has(key)) alike.set(key, []);
      alike.get(key).push(task);
    });
    for (const group of alike.values()) {
      if (group.length >= SMALLEST_GROUP) for (const task of group) groups.set(task.id, group);
    }
    return groups;
  }

  function drawAxis() {
    // Where there is little room, only the first and the last.
    const isNarrow = axis.clientWidth < 420;
    const ticks = clock.ticks(isNarrow ? 2.5 : axis.clientWidth < 700 ? 4 : 6);
    const marks = (isNarrow ? [0, ...ticks.slice(1).slice(-1)] : ticks).map((at) => {
      const mark = h("span", {}, at === 0 ? "0" : duration(at).replace(" 00 s", "").replace(".0 s", " s"));
      mark.style.left = `${(at / clock.total) * 100}%`;
      return mark;
    });
    // Those close to each other share their words, so that no words cover others.
    const room = clock.total * Math.max(1 / 8, ROOM_FOR_WORDS / (track.clientWidth || Infinity));
    const near = [];
    for (const { at, seconds } of clock.folds) {
      if (!near.length || at - near.at(-1).at > room) near.push({ at, seconds: 0, resumed: 0 });
      near.at(-1).seconds += seconds ?? 0;
      near.at(-1).resumed += seconds === null ? 1 : 0;
    }
    const folds = near.map(({ at, seconds, resumed }) => {
      const words = [seconds ? `${duration(seconds)} folded` : "", resumed ? `resumed${resumed > 1 ? ` ${resumed} times` : ""}` : ""];
      const mark = h("span", { class: "folded" }, words.filter(Boolean).join(", "));
      mark.style.left = `${(at / clock.total) * 100}%`;
      return mark;
    });
    axis.classList.toggle("with-folds", folds.length > 0);
    fill(track, marks, folds);
  }

  function update(newer) {
    state = newer;
    clock = clockOf(state, state.now());
    critical = new Set(state.graph?.critical);
    arrange();
    drawAxis();
    list.box.style.maxHeight = `${Math.max(Math.min(rows.length * ROW, window.innerHeight * 0.7), ROW)}px`;
    list.box.style.height = `${rows.length * ROW}px`;
    list.update(rows.length);
    none.hidden = rows.length > 0 || !(filter.words || filter.statuses.size);
  }

  return {
    box,
    update,
    filter(words, statuses) {
      filter.words = words.trim().toLowerCase();
      filter.statuses = statuses;
      current = -1;
      if (state) update(state);
    },
    /** Move the keyboard's place by so many tasks. */
    move(by) {
      let next = current;
      do next += by; while (next >= 0 && next < rows.length && !rows[next].task && !rows[next].group);
      if (next < 0 || next >= rows.length) return;
      current = next;
      list.update(rows.length);
      list.reach(current)?.focus({ preventScroll: true });
    },
    open: () => rows[current]?.task && open(rows[current].task.id),
  };
}
