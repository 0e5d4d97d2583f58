// Numbers and statuses -> the words people read.

export const GLYPHS = {
  done: "✓", failed: "✕", escalated: "▲", skipped: "⊘", running: "●", stopped: "■", ready: "○", waiting: "○",
};

export const STATUS_WORDS = {
  complete: "Complete",
  partial: "Partial",
  failed: "Failed",
  running: "Running",
  waiting: "Waiting",
  paused: "Paused",
  interrupted: "Interrupted",
  cancelled: "Cancelled",
};

/** What a run waits for -> words. The limit of a provider ends by itself. */
const WAIT_WORDS = { person: "Waiting for a person", provider: "Waiting for a provider", resume: "Answered: resume it" };

/** The status in words, of a run or of its line in the list. */
export const statusWords = (state) => WAIT_WORDS[state.waits_for] ?? STATUS_WORDS[state.status] ?? state.status;

/** Whether a run is over: it has an answer or will not have one. */
export const isEnded = (status) => !["running", "waiting", "paused", "interrupted"].includes(status);

/** `0.0 s`, `35 ms`, `0.4 s`, `4.2 s`, `2 min 05 s`, `1 h 03 min`. */
export function duration(seconds) {
  if (seconds >= 0.0005 && seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 59.95) return `${Math.max(seconds, 0).toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [minutes, rest] = [Math.floor(whole / 60), whole % 60];
  if (minutes < 60) return `${minutes} min ${String(rest).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Dollars; an unknown price is said, never shown as nothing. */
export function money(usd) {
  if (usd === null || usd === undefined) return "unknown";
  const whole_cents = Math.abs(usd - Math.round(usd * 100) / 100) < 0.00005;
  return usd >= 1 || usd === 0 || (whole_cents && usd >= 0.01) ? `$${usd.toFixed(2)}` : `$${usd.toFixed(4)}`;
}

export const count = (number) => Number(number).toLocaleString("en");

/** `13k`, `1.2M`: where there is little room. */
export const compact = (number) => Number(number).toLocaleString("en", { notation: "compact" }).replace("K", "k");

export const several = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** How long ago, in the largest unit. */
export function age(seconds) {
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${several(Math.floor(seconds / 86400), "day")} ago`;
}

/** The name of a model; of one that is a file without the folder. */
export const modelName = (model) => model.replace(/^([a-z]+:).*[/\\]/, (whole, kind) => (/^(scripted|embedded):/.test(whole) ? kind : whole));

export const moment = (at) => new Date(at * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";

export const pretty = (value) => (value === null || value === undefined ? "" : typeof value === "string" ? value : json(value, ""));

/** JSON with two spaces a level, and short lists of plain values on one line. */
function json(value, indent) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const inner = `${indent}  `;
  const parts = isList ? value.map((each) => json(each, inner)) : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${json(each, inner)}`);
  const [open, close] = isList ? "[]" : "{}";
  if (!parts.length) return open + close;
  const line = parts.join(", ");
  if (isList && line.length <= 70 && value.every((each) => each === null || typeof each !== "object")) return `[${line}]`;
  return `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}`;
}

export const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`);

/** How long a run still waits for a provider. */
function left(state) {
  const minutes = Math.round((state.waiting.until - state.now()) / 60);
  return minutes < 1 ? "" : `, in ${duration(minutes * 60).replace(" 00 s", "").replace(" 00 min", "")}`;
}

/** The state of a run in one sentence. */
export function sentence(state) {
  const { counts, tasks } = state;
  const done = counts.done ?? 0;
  const running = counts.running ?? 0;
  const failed = (counts.failed ?? 0) + (counts.escalated ?? 0);
  const total = tasks.size || state.planned;
  const of = total ? `${count(done)} of ${several(total, "task")} done` : "no plan";
  const wrong = ["failed", "escalated", "skipped"].filter((status) => counts[status]).map((status) => `, ${count(counts[status])} ${status}`).join("");
  switch (state.status) {
    case "running":
      if (!tasks.size) return "The planner is making a plan.";
      if (state.restarts.length) return `When the calls in flight have ended, ${state.restarts.join(", ")} ${state.restarts.length === 1 ? "runs" : "run"} again; ${of}${wrong}.`;
      if (done + failed + (counts.skipped ?? 0) === tasks.size) return "All tasks have ended; the answer is being written.";
      return `${several(running, "task")} at work, ${of}${wrong}.`;
    case "waiting":
      if (state.waits_for === "resume") return `All questions are answered, and the run is not continued yet; ${of}${wrong}. Resume continues it.`;
      if (state.waits_for === "provider") {
        const until = state.waiting?.until ? `, until ${moment(state.waiting.until)}${left(state)}` : "";
        return `Waits for ${state.waiting?.provider || "a provider"}, whose limit is reached${until}; ${of}${wrong}.`;
      }
      return tasks.size || !state.plan
        ? `Waits for a person: ${several(state.questions.length, "open question")}; ${of}${wrong}.`
        : `Waits for a person to approve a plan of ${several(state.plan.tasks.length, "task")}.`;
    case "paused":
      return `Paused by a person; ${of}${wrong}. Resume continues it.`;
    case "interrupted":
      return `Its process ended before the run did; ${of}${wrong}. Resume continues it.`;
    case "complete":
      return tasks.size === 1 ? "Everything asked for is in the answer." : `Everything asked for is in the answer; ${of}.`;
    case "partial":
      return `${state.report?.gaps?.length ? "The answer has gaps" : state.report?.problems?.length ? "The answer has statements to check" : state.report?.unused_number ? `The answer does not use ${several(state.report.unused_number, "result")}` : "The answer is not whole"}; ${of}${wrong}.`;
    case "failed":
      return `There is no answer; ${of}${wrong}.`;
    case "cancelled":
      return `Cancelled; ${of}${wrong}.`;
    default:
      return `${STATUS_WORDS[state.status] ?? state.status}; ${of}${wrong}.`;
  }
}
