// Events -> a list with a filter, read from the record when it is first opened.
import { h, virtualList } from "./dom.js";
import { count, cut, pretty, several } from "./words.js";

const ROW = 28;
const PART = 1_000;

export function log(source) {
  let events = [];
  let shown = [];
  let started = 0;
  let read = false;
  let searches = 0;
  const list = virtualList(ROW, (index) => row(shown[index]), "Events");
  const words = h("input", { type: "search", placeholder: "Find events", "aria-label": "Find events", oninput: () => filter() });
  const title = h("h2", {}, "Events");
  const found = h("p", { class: "quiet", role: "status" });
  const body = h("div", {}, h("div", { class: "filter" }, words), found, list.box);
  const details = h("details", { ontoggle: () => details.open && load() }, h("summary", {}, title), body);
  const whole = h("pre", { class: "event-data", hidden: true });
  body.append(whole);

  function row(event) {
    const said = JSON.stringify(rest(event));
    return h("a", { class: "row event", href: `#event/${event.seq}` },
      h("span", { class: "seq" }, String(event.seq)), h("span", { class: "at" }, `${Math.max(event.at - started, 0).toFixed(3)} s`),
      h("b", {}, event.kind), h("span", {}, event.task ?? ""), h("code", {}, cut(said, 200)));
  }

  const rest = ({ run, seq, at, kind, task, attempt, ...data }) => data.data ?? data;

  /** Of events those with all words that were typed, in any field. */
  function having(some) {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!wanted.length) return some;
    return some.filter((event) => {
      const text = JSON.stringify(event).toLowerCase();
      return wanted.every((word) => text.includes(word));
    });
  }

  /** Part by part, so that the page can be used while a long record is looked through; newer words end an older search. */
  async function filter() {
    searches += 1;
    const mine = searches;
    const some = words.value.trim() ? [] : [...events];
    for (let at = some.length; at < events.length; at += PART) {
      if (at) await new Promise((resume) => setTimeout(resume));
      if (mine !== searches) return;
      some.push(...having(events.slice(at, at + PART)));
    }
    shown = some;
    update();
  }

  function update() {
    found.textContent = !words.value.trim() ? "" : shown.length ? `${count(shown.length)} of ${several(events.length, "event")}` : "No event has these words.";
    list.box.style.height = `${Math.min(shown.length * ROW, 420)}px`;
    list.update(shown.length);
  }

  async function load() {
    if (read) return;
    read = true;
    try {
      const recorded = await source.events(0);
      const last = recorded.at(-1)?.seq ?? 0;
      // Some may have come by the stream meanwhile.
      events = [...recorded, ...events.filter((event) => event.seq > last)];
      found.classList.remove("alert");
      await filter();
    } catch (error) {
      read = false;
      found.classList.add("alert");
      found.textContent = `The events could not be read: ${error.message} Close this part and open it again.`;
    }
  }

  return {
    box: h("section", {}, details),
    update(state) {
      started = state.started ?? 0;
      title.textContent = `Events (${count(state.seq)})`;
    },
    /** Events that just came; those that are known are passed over. */
    take(newer) {
      if (!read) return;
      const last = events.at(-1)?.seq ?? 0;
      const unknown = newer.filter((event) => event.seq > last);
      events.push(...unknown);
      shown.push(...having(unknown));
      if (details.open) update();
    },
    async show(seq) {
      details.open = true;
      await load();
      let index = shown.findIndex((event) => event.seq === seq);
      if (index < 0 && words.value) {
        words.value = "";
        await filter();
        index = shown.findIndex((event) => event.seq === seq);
      }
      if (index < 0) return;
      details.scrollIntoView({ block: "start" });
      list.reach(index)?.focus({ preventScroll: true });
      whole.hidden = false;
      whole.textContent = pretty(shown[index]);
    },
  };
}
