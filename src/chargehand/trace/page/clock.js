// Times of day -> seconds of running: the time between sessions, and that in which a run only waited for a person or a provider, is folded away.

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];
// A shorter wait is left where it is.
const SHORTEST_FOLD_S = 2;

/** How long the calls of a task took, those in flight until now, without waits. */
export function secondsOf(task, clock) {
  const between = (from, to) => clock.running(to) - clock.running(from);
  const inFlight = task.calls.filter(([, , , , call]) => call === "open").map(([, , started, , , waits]) =>
    waits.filter(([since]) => since >= started).reduce((left, [from, to]) => left - between(from, to), between(started, null)));
  return inFlight.reduce((sum, seconds) => sum + seconds, task.seconds);
}

export function clockOf(state, now) {
  const stretches = [];
  const folds = [];
  let before = 0;
  const add = (started, end) => {
    stretches.push({ started, end, before });
    before += Math.max(end - started, 0);
  };
  state.sessions.forEach(([started, ended, resumed], index) => {
    const last = index === state.sessions.length - 1;
    const end = last && state.status === "running" ? Math.max(ended, now) : ended;
    if (resumed) folds.push({ at: before, seconds: null });
    let from = started;
    for (const [idleFrom, idleTo] of state.idle ?? []) {
      if (idleFrom < from || idleTo > end || idleTo - idleFrom < SHORTEST_FOLD_S) continue;
      add(from, idleFrom);
      folds.push({ at: before, seconds: idleTo - idleFrom });
      from = idleTo;
    }
    add(from, end);
  });
  const total = Math.max(before, 0.001);
  const running = (at) => {
    if (at === null || at === undefined) return total;
    for (let index = stretches.length - 1; index >= 0; index -= 1) {
      const { started, end, before: passed } = stretches[index];
      if (at >= started) return passed + Math.max(Math.min(at, end) - started, 0);
    }
    return 0;
  };
  return {
    total,
    running,
    /** Where on the line a time is, from 0 to 100. */
    percent: (at) => (running(at) / total) * 100,
    /** Where time was folded away: at this second, so many of them; `null` where the run was resumed. */
    folds,
    ticks(most) {
      const step = STEPS.find((each) => total / each <= most) ?? total / most;
      return Array.from({ length: Math.floor(total / step) + 1 }, (_, number) => number * step);
    },
  };
}
