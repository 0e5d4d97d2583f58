// Times of day -> seconds of running: the time between sessions, when no process ran the run, is folded away.

const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200];

export function clockOf(state, now) {
  const sessions = [];
  let before = 0;
  state.sessions.forEach(([started, ended, resumed], index) => {
    const last = index === state.sessions.length - 1;
    const end = last && state.status === "running" ? Math.max(ended, now) : ended;
    sessions.push({ started, end, before, resumed });
    before += end - started;
  });
  const total = Math.max(before, 0.001);
  const running = (at) => {
    if (at === null || at === undefined) return total;
    for (let index = sessions.length - 1; index >= 0; index -= 1) {
      const { started, end, before: passed } = sessions[index];
      if (at >= started) return passed + Math.max(Math.min(at, end) - started, 0);
    }
    return 0;
  };
  return {
    total,
    running,
    /** Where on the line a time is, from 0 to 100. */
    percent: (at) => (running(at) / total) * 100,
    resumed: sessions.filter((session) => session.resumed).map((session) => session.before),
    ticks() {
      const step = STEPS.find((each) => total / each <= 6) ?? total / 6;
      return Array.from({ length: Math.floor(total / step) + 1 }, (_, number) => number * step);
    },
  };
}
