// The report of a run, or what is known of it so far -> figures, answer, findings, gaps, contradictions, notes.
import { h, prose, withCode } from "./dom.js";
import { draftProse } from "./draft.js";
import { count, duration, isEnded, money, pretty, several } from "./words.js";

const SHORT_LIST = 3;
// Tasks named for one gap, or for what an answer does not use.
const MOST_NAMED = 20;
// Characters of HTML. A longer answer is cut off by height, so that the tasks below it are in reach.
const LONG_ANSWER = 16_000;
const LONG_FAILURE = 1_500;

const section = (title, kind, ...body) => h("section", { class: kind }, h("h2", {}, title), body);
/** Links to the first of many tasks, and how many more there are. */
const named = (ids, number = ids.length) => [...ids.slice(0, MOST_NAMED).flatMap(task), number > MOST_NAMED ? `and ${count(number - MOST_NAMED)} more ` : null];
const task = (id) => (id ? [h("a", { class: "cite", href: `#task/${id}` }, id), " "] : null);

export function figures(state) {
  const { usage, counts, budget } = state;
  const other = Object.entries(counts).filter(([status]) => status !== "done").map(([status, number]) => `${count(number)} ${status}`).join(", ");
  const speedup = state.report?.speedup;
  const elapsed = (state.status === "running" || state.status === "paused") && !state.is_still ? state.elapsed_s + Math.max(state.now() - state.last_event, 0) : state.elapsed_s;
  const total = state.tasks.size || state.planned;
  const [done, rest] = [count(counts.done ?? 0), `of ${count(total)}`];
  const cards = [
    // Two large numbers do not fit on a line.
    ...(total === 0 && isEnded(state.status) ? [] : [total < 1_000 ? ["Tasks done", `${done} ${rest}`, other] : ["Tasks done", done, [rest, other].filter(Boolean).join(", ")]]),
    ["Time", duration(elapsed), speedup ? `${speedup.toFixed(1)} × as fast as one by one` : budget.deadline_s ? `of ${duration(budget.deadline_s).replace(/ 00 (s|min)$/, "")}` : ""],
    ["Tokens", count(usage.tokens), [
      budget.tokens ? `of ${count(budget.tokens)}` : "",
      usage.cached_tokens ? `${Math.floor((usage.cached_tokens * 100) / usage.input_tokens)} % of the input from cache` : "",
      usage.estimated_tokens ? `${count(usage.estimated_tokens)} estimated` : "",
    ].filter(Boolean).join(", ")],
    // Before the first reply it is not known whether the model has a price.
    ...(usage.calls || isEnded(state.status) ? [["Cost", money(usage.usd), usage.usd === null ? "the model has no known price" : budget.usd ? `of ${money(budget.usd)}` : ""]] : []),
    ["Model calls", count(usage.calls), usage.tools ? several(usage.tools, "tool call") : ""],
  ];
  if (Number.isInteger(state.report?.confidence)) cards.push(["Confidence", `${state.report.confidence}`, "of 100"]);
  return h("dl", { class: "figures" }, cards.map(([name, figure, beside]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, figure, h("small", {}, beside)))));
}

export function answer(state, draft) {
  const report = state.report;
  if (draft && state.status === "running") return section("Answer", "answer", h("p", { class: "quiet" }, "It is being written."), draftProse(draft, state.tasks));
  if (!isEnded(state.status)) return null;
  if (report?.answer_html) {
    return section(state.status === "failed" ? "Why there is no answer" : "Answer", `answer ${state.status}`, folded(prose(report.answer_html), report.answer_html.length > (state.status === "failed" ? LONG_FAILURE : LONG_ANSWER)), report.answer_cut ? h("p", { class: "quiet" }, "The answer is longer; the export has all of it.") : null,
      problems(report), unused(report));
  }
  return section("Answer", "answer", h("p", { class: "quiet" }, "There is no answer on the record."));
}

function folded(box, isLong) {
  if (!isLong) return box;
  box.classList.add("cut-off");
  const button = h("button", { type: "button", onclick: () => {
    box.classList.remove("cut-off");
    button.remove();
  } }, "Show the whole answer");
  return [box, button];
}

/** What the check of the answer found. */
function problems(report) {
  const found = (report.problems ?? []).map((each) => (typeof each === "string" ? each : each.message ?? pretty(each))).map(String);
  return found.length ? foldedList(`${several(found.length, "statement")} of the answer to check`, found) : null;
}

/** Tasks that are done and that the answer does not build on. */
const unused = ({ unused: ids = [], unused_number: number = ids.length }) =>
  (ids.length ? foldedList(`${several(number, "result")} the answer does not use`, [named(ids, number)]) : null);

const foldedList = (title, items) => h("details", { class: "folded-list" }, h("summary", {}, title), h("ul", {}, items.map((each) => h("li", {}, each))));

export function findings(state) {
  const found = state.report?.findings ?? [];
  if (!found.length) return null;
  const left = (state.report.findings_number ?? found.length) - found.length;
  return section(`Findings (${count(state.report.findings_number ?? found.length)})`, "", h("ol", { class: "findings" }, found.map((each) =>
    h("li", {},
      h("span", { class: `sev v-${/^[a-z]+$/.test(each.severity) ? each.severity : "info"}` }, String(each.severity)),
      h("div", {}, each.path ? h("code", {}, `${each.path}${each.line ? `:${each.line}` : ""}`) : null,
        h("p", {}, withCode(each.message ?? "")), each.suggestion ? h("p", { class: "quiet" }, withCode(each.suggestion)) : null),
      Number.isInteger(each.confidence) ? h("small", {}, `confidence ${each.confidence}`) : null))),
  left > 0 ? h("p", { class: "quiet" }, `${several(left, "finding")} more in the export.`) : null);
}

export function gaps(state) {
  const found = state.report?.gaps ?? [];
  // Without tasks, the only gap is the reason why there is no answer.
  if (!found.length || (isEnded(state.status) && !state.order.length)) return null;
  const item = (...same) => {
    const impact = same.length > 1 ? ownImpact(same[0]) : same[0].impact;
    return [named(same.map((gap) => gap.task)), withCode(same[0].reason ?? ""), impact ? [h("br"), h("span", { class: "quiet" }, withCode(impact))] : null];
  };
  // What was skipped follows from the others.
  const skipped = found.filter((gap) => state.tasks.get(gap.task)?.status === "skipped");
  const others = found.filter((gap) => !skipped.includes(gap));
  const left = (state.report.gaps_number ?? found.length) - found.length;
  return section("Gaps", "alert", h("ul", {}, alike(others).map((same) => h("li", {}, item(...same)))),
    skipped.length ? foldedList(`${several(skipped.length, "task")} skipped because of that`, skipped.map((gap) => item(gap))) : null,
    left > 0 ? h("p", { class: "quiet" }, `${several(left, "gap")} more in the export.`) : null);
}

/** What a gap means, without the tasks that were skipped: those are listed. */
const ownImpact = (gap) => String(gap.impact ?? "").replace(/\s*Skipped because of it: .*?\.(?=\s|$)/, "");

/** Gaps that say the same of several tasks, together. */
function alike(gaps) {
  const groups = new Map();
  for (const gap of gaps) {
    const words = JSON.stringify([gap.reason, ownImpact(gap)]);
    groups.set(words, [...(groups.get(words) ?? []), gap]);
  }
  return [...groups.values()];
}

export function contradictions(state) {
  const found = state.report?.contradictions ?? [];
  if (!found.length) return null;
  return section("Contradictions", "", h("ul", {}, found.map((each) =>
    h("li", {}, h("strong", {}, String(each.subject ?? "")), each.resolved ? " · resolved" : " · open",
      h("ul", {}, (each.claims ?? []).map((claim) => h("li", { class: "quiet" }, pretty(claim.statement ?? claim)))),
      each.verdict ? h("p", {}, `Verdict: ${each.verdict}`) : null, each.reason ? h("p", { class: "quiet" }, String(each.reason)) : null))));
}

export function notes(state) {
  const all = [...new Set([...state.notes, ...(state.report?.notes ?? [])].map(String))];
  return all.length ? h("section", {}, h("details", { open: all.length <= SHORT_LIST && isEnded(state.status) },
    h("summary", {}, h("h2", {}, `Notes (${count(all.length)})`)), h("ul", {}, all.map((note) => h("li", {}, withCode(note)))))) : null;
}
