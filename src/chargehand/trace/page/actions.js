// The state of a run -> what can be done with it now: buttons, and forms for what needs words.
import { h } from "./dom.js";
import { planEditor } from "./questions.js";
import { ask, exportAddress, runAddress } from "./source.js";
import { isEnded } from "./words.js";

/** Changes when other actions become possible; a form that is being filled in stays until then. */
export const actionsVersion = (state) => JSON.stringify([state.status, state.questions.length > 0, state.orders, state.ways_on, state.tasks.size > 0]);

export function actions(source, state) {
  const note = h("span", { class: "quiet", role: "status" });
  const send = async (action, values) => {
    note.textContent = "";
    try {
      const made = await source.act(action, values);
      note.textContent = made.note ?? "Sent.";
      if (made.run && made.run !== state.run) location.assign(runAddress(made.run));
    } catch (error) {
      note.textContent = [error.message, ...(error.problems ?? []).map((each) => each.message)].join(" ");
    }
  };
  const button = (name, action, values = {}, kind = "") => h("button", { type: "button", class: kind, onclick: () => send(action, values) }, name);
  const takes = (order) => state.orders?.includes(order);
  const ended = isEnded(state.status);
  const stopped = !ended && state.status !== "running";
  return h("div", { class: "buttons actions" },
    state.status === "running" && takes("pause") ? button("Pause", "pause") : null,
    (stopped && !state.questions.length) || state.status === "cancelled" ? button("Resume", "resume", {}, "main") : null,
    ended && state.ways_on.retry_failed ? button("Try what failed again", "resume", { retry_failed: true }, "main") : null,
    limitsOf(state).length && (stopped || takes("pause") || (ended && Object.keys(state.ways_on.limits).length)) ? topUpForm(state, send) : null,
    ended ? null : button("Cancel", "cancel"),
    ended ? button("Run again", "rerun") : null,
    state.tasks.size ? forkForm(state, send) : null,
    ended && state.ways_on.another_plan ? planForm(state, send) : null,
    h("details", { class: "menu" }, h("summary", {}, "Export"), h("div", { class: "sheet" },
      [["html", "This page as one file"], ["json", "The record as JSON"], ["jsonl", "The events as JSON lines"]].map(([form, words]) =>
        h("a", { href: exportAddress(state.run, form), download: true }, words)))),
    !ended && window.Notification?.permission === "default" ? h("button", { type: "button", onclick: () => Notification.requestPermission() }, "Notify me") : null, note);
}

/** A button that opens a small form. */
function menu(title, words, fields, name, read) {
  const problem = h("p", { class: "quiet", role: "status" });
  return h("details", { class: "menu" }, h("summary", {}, title),
    h("form", {
      class: "sheet", onsubmit: (event) => {
        event.preventDefault();
        problem.textContent = read() ?? "";
      },
    }, h("p", { class: "quiet" }, words), fields, h("div", { class: "buttons" }, h("button", { type: "submit", class: "main" }, name)), problem));
}

/** The limits that the run has: what has no limit cannot grow. */
const limitsOf = ({ budget }) => Object.entries({ tokens: budget.tokens, usd: budget.usd, deadline: budget.deadline_s })
  .filter(([, most]) => most !== null && most !== undefined).map(([name]) => name);

function topUpForm(state, send) {
  const { limits } = state.ways_on;
  const inputs = Object.fromEntries(limitsOf(state).map((name) => [name, number(name === "tokens" ? 1 : "any", limits[name])]));
  const labels = { tokens: "More tokens", usd: "More dollars", deadline: "More seconds" };
  return menu("Top up", state.status === "running" ? "Adds to the budget of the run." : "Adds to the budget of the run, and resumes it.",
    Object.entries(inputs).map(([name, input]) => h("label", {}, labels[name], input)), "Add", () => {
      const values = Object.fromEntries(Object.entries(inputs).filter(([, input]) => input.value).map(([name, input]) => [name, Number(input.value)]));
      if (!Object.keys(values).length) return "Write at least one number.";
      send("resume", values);
      return null;
    });
}

/** For a run whose plan a person rejected. */
function planForm(state, send) {
  const editor = planEditor(state);
  return menu("Fork", "A new run of the same request with the plan as you edit it here.", editor.parts, "Start the fork", () => {
    if (editor.isDraft()) return "Change the plan first: this is the one that was rejected.";
    editor.read((plan) => send("fork", { plan }));
    return null;
  });
}

const number = (step, value = "") => h("input", { type: "number", min: 0, step, value });

function forkForm(state, send) {
  const task = h("select", {}, h("option", { value: "" }, "every task"), state.order.filter((id) => !id.includes("/")).map((id) => h("option", { value: id }, id)));
  const model = h("select", {}, h("option", { value: "" }, "the same model"));
  ask("/models").then((found) => model.append(...(found.offered ?? []).map((name) => h("option", { value: name }, name)))).catch(() => {});
  return menu("Fork", "A new run that keeps other results of this one. The task you choose, and all that need it, are done again.",
    [h("label", {}, "Again from task", task), h("label", {}, "By model", model)], "Start the fork", () => {
      if (!task.value && !model.value) return "Choose a task or a model. To do every task again with the same model, use Run again.";
      send("fork", { ...(task.value ? { at: task.value } : {}), ...(model.value ? { model: model.value } : {}) });
      return null;
    });
}
