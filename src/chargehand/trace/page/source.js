// Where the page gets its data: from the server it came from, or from the file it is packed into.

const packed = document.getElementById("data");
export const isLive = packed === null;
const AGAIN_MS = 2000;
const base = document.documentElement.dataset.root ?? "";

/** A problem that the server described; `problems` are those of a plan. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.problems = body.problems ?? [];
  }
}

export async function ask(path, options = {}) {
  const response = await fetch(`${base}/api/v1${path}`, { credentials: "same-origin", ...options });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, body);
  return body;
}

export const post = (path, body = {}) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

export const runAddress = (run) => `${base}/runs/${encodeURIComponent(run)}`;
export const homeAddress = `${base}/`;
export const exportAddress = (run, form) => `${base}/api/v1/runs/${encodeURIComponent(run)}/trace?format=${form}`;

/** One run: its state, the details of a task, its events, and word of every change. */
export const openRun = (run) => (isLive ? liveRun(run) : packedRun(JSON.parse(packed.textContent)));

function packedRun(data) {
  return {
    run: data.state.run,
    state: async () => data.state,
    detail: async (task) => data.details[task] ?? null,
    events: async () => data.events,
    watch: () => {},
  };
}

function liveRun(run) {
  const path = `/runs/${encodeURIComponent(run)}`;
  return {
    run,
    state: (since = 0) => ask(`${path}/state${since ? `?since=${since}` : ""}`),
    detail: (task) => ask(`${path}/state?task=${encodeURIComponent(task)}`),
    events: async (after = 0) => {
      const response = await fetch(`${base}/api/v1${path}/events?after=${after}`, { credentials: "same-origin" });
      if (!response.ok) throw new Problem(response.status, await response.json().catch(() => ({})));
      return (await response.text()).split("\n").filter(Boolean).map((line) => JSON.parse(line));
    },
    act: (action, body) => post(`${path}/${action}`, body),
    /** Events after a number: calls `on.events(list)` at most every 100 ms, `on.draft(draft)`, and `on.connected(bool)`. */
    watch(after, on) {
      let last = after;
      let waiting = [];
      let timer = null;
      let flushed = -Infinity;
      const flush = () => {
        timer = null;
        flushed = performance.now();
        const events = waiting;
        waiting = [];
        on.events(events);
      };
      const take = (message) => {
        const event = JSON.parse(message.data);
        last = event.seq;
        waiting.push(event);
        timer ??= setTimeout(flush, flushed + 100 - performance.now());
      };
      const open = () => {
        const stream = new EventSource(`${base}/api/v1${path}/stream?after=${last}`);
        stream.onmessage = take;
        stream.addEventListener("event", take);
        stream.addEventListener("draft", (message) => on.draft(JSON.parse(message.data)));
        stream.addEventListener("draft_discarded", (message) => on.draft({ ...JSON.parse(message.data), discarded: true }));
        stream.onopen = () => on.connected(true);
        stream.onerror = () => {
          on.connected(false);
          // A browser gives up when something else than a stream answers, such as a proxy whose server restarts.
          if (stream.readyState === EventSource.CLOSED) setTimeout(open, AGAIN_MS);
        };
      };
      open();
    },
  };
}
