// One task -> a panel at the side: what it was asked, what it did attempt by attempt, what it gave, and orders to it.
import { h, fill } from "./dom.js";
import { clockOf, secondsOf } from "./clock.js";
import { runAddress } from "./source.js";
import { GLYPHS, count, duration, modelName, money, pretty, several } from "./words.js";

const LONGEST = 40_000;

export function drawer(source, close) {
  const head = h("div", { class: "drawer-head" });
  const ordersPlace = h("div", {});
  const rest = h("div", {});
  const body = h("div", { class: "drawer-body" }, ordersPlace, rest);
  const box = h("aside", { class: "drawer", "aria-label": "Task", tabindex: -1, hidden: true }, head, body);
  let shown = null;
  let orders = null;
  let drawn = null;

  async function show(task, attempt, state) {
    const isNew = shown !== task.id;
    shown = task.id;
    box.hidden = false;
    fill(head,
      h("div", { class: "drawer-title" },
        h("span", { class: `badge s-${task.status}` }, `${GLYPHS[task.status]} ${task.status}`),
        h("h2", {}, task.id), h("span", { class: "quiet" }, task.worker),
        h("button", { type: "button", class: "close", "aria-label": "Close", onclick: close }, "✕")),
      h("p", { class: "quiet" }, [
        task.started === null ? "" : `${duration(secondsOf(task, clockOf(state, state.now())))} at work`, task.tokens ? `${count(task.tokens)} tokens` : "",
        task.tokens ? `cost ${money(task.usd)}` : "", several(task.attempts.length, "attempt"), task.reused ? "reused from an earlier run" : "",
      ].filter(Boolean).map((each) => each.replaceAll(" ", "\u00a0")).join(" · ")),
      task.doing && task.status === "running" ? h("p", { class: "doing" }, `Now: ${task.doing}`) : null);
    if (isNew) {
      orders = source.act ? makeOrders(task.id) : null;
      fill(ordersPlace, orders?.box);
      fill(rest, h("p", { class: "quiet" }, "Reading the record …"));
      box.focus({ preventScroll: true });
      drawn = null;
    }
    orders?.update(task, state);
    const version = `${task.id} ${task.status} ${task.orders} ${task.calls.length} ${task.calls.filter((call) => call[3]).length}`;
    if (drawn === version && !isNew) return;
    try {
      const detail = await source.detail(task.id);
      if (shown !== task.id) return;
      drawn = version;
      const scrolled = body.scrollTop;
      const unfolded = new Set([...rest.querySelectorAll("details[open]")].map((each) => each.dataset.key));
      fill(rest, ...parts(task, detail, state));
      for (const each of rest.querySelectorAll("details")) if (unfolded.has(each.dataset.key)) each.open = true;
      body.scrollTop = scrolled;
      if (isNew && attempt) {
        const section = body.querySelector(`[data-attempt="${Number(attempt)}"]`);
        if (section) {
          section.open = true;
          section.scrollIntoView({ block: "start" });
        }
      }
    } catch (error) {
      fill(rest, h("p", { class: "alert" }, `The details could not be read: ${error.message}`));
    }
  }

  function parts(task, detail, state) {
    const outcome = detail?.outcome ?? null;
    return [
      detail?.orders.length ? field("Orders", h("ul", {}, detail.orders.map((each) => h("li", {}, orderWords(each))))) : null,
      block("Instruction", detail?.instruction ?? task.says),
      block("Done when", detail?.success_criterion),
      task.after.length ? field("After", task.after.map((id) => [taskLink(id), " "])) : null,
      outcome ? result(outcome, state) : null,
      ...(detail?.attempts ?? []).map((each) => attemptPart(each, detail.decisions)),
      detail ? null : h("p", { class: "quiet" }, "The page has no more of this task; the record has."),
    ];
  }

  function result(outcome, state) {
    const error = outcome.error ? `${outcome.error.kind}: ${outcome.error.message}` : "";
    const escalation = outcome.escalation ? `${outcome.escalation.reason.replaceAll("_", " ")}: ${outcome.escalation.message}` : "";
    return [
      block("Error", error), block("Escalated", escalation),
      outcome.because?.length ? field("Because of", outcome.because.map((id) => [taskLink(id), " "])) : null,
      block(`${outcome.partial ? "Partial output" : "Output"}${Number.isInteger(outcome.confidence) ? ` · confidence ${outcome.confidence}` : ""}`,
        pretty(outcome.output), typeof outcome.output === "string" ? "" : "json"),
      outcome.claims?.length ? field("Claims", h("ul", {}, outcome.claims.map((claim) => h("li", {}, claim.statement, sources(claim, state))))) : null,
      outcome.findings?.length ? field("Findings", h("ul", {}, outcome.findings.slice(0, 100).map((finding) =>
        h("li", {}, h("code", {}, `${finding.path ?? ""}${finding.line ? `:${finding.line}` : ""}`), " ", finding.message)))) : null,
    ];
  }

  function attemptPart(attempt, decisions) {
    const took = attempt.ended ? ` · ${duration(attempt.seconds ?? attempt.ended - attempt.started)}` : "";
    const error = attempt.error ? `${attempt.error.kind}: ${attempt.error.message}` : "";
    const decided = decisions.filter((each) => (each.attempt ?? attempt.number) === attempt.number);
    return h("details", { class: "attempt-part", "data-attempt": attempt.number, "data-key": `a${attempt.number}`, open: Boolean(error) || attempt.number === 1 },
      h("summary", {}, `Attempt ${attempt.number} · ${attempt.worker ? `${attempt.worker} · ` : ""}${attempt.status}${took}`,
        attempt.model ? h("span", { class: "quiet" }, ` · ${modelName(attempt.model)}`) : null),
      h("a", { class: "here", href: `#task/${shown}@${attempt.number}`, "aria-label": `Link to attempt ${attempt.number}` }, "link"),
      error ? h("p", { class: "alert" }, error) : null,
      attempt.calls.map((call) => callPart(call, attempt.status)),
      decided.map((each) => h("details", { class: "decision", "data-key": `d${each.seq}`, open: each.decision === "rewrite" },
        h("summary", {}, decisionWords(each)), each.decision === "rewrite" ? rewritten(each.value) : [
          each.reason === attempt.error?.message ? null : h("p", { class: "quiet" }, each.reason), h("pre", {}, pretty(each.value).slice(0, LONGEST))])));
  }

  /** What was decided after an attempt, as a sentence. */
  function decisionWords({ decision, value, reason }) {
    if (decision === "rewrite") return "The task was rewritten";
    if (decision === "transport_retry") return `The call was sent again after ${duration(value.after_s)}: ${reason}`;
    const said = {
      retry: "Then: once more", refine: "Then: once more, with a rewritten instruction", upgrade: `Then: once more, by the ${value?.tier} model`,
      reassign: `Then: given to ${value?.worker ?? "another worker"}`, split: "Then: split into smaller tasks", ask: "Then: a person was asked", give_up: "Then: given up",
    };
    return (decision === "recovery" && said[value?.kind]) || `${decision.replaceAll("_", " ")}: ${reason}`;
  }

  const rewritten = ({ instruction, context, success_criterion: criterion }) =>
    [block("Instruction", instruction), block("Context", pretty(context)), block("Done when", criterion)];

  /** Where a claim comes from; that it comes from the task itself needs no words. */
  function sources(claim, state) {
    const others = (claim.sources ?? []).filter((each) => each !== shown && each !== shown.split("/").at(-1));
    return others.length ? h("div", { class: "sources" }, others.map((each) => [state.tasks.has(each) ? taskLink(each) : h("code", {}, each), " "])) : null;
  }

  /** A call without an end is in flight only while its attempt is running. */
  function callPart(call, status) {
    const reply = call.result?.reply ?? null;
    const error = call.result?.error;
    const waited = (call.result?.waiting_s ?? 0) > 0.05 ? `waited ${duration(call.result.waiting_s)}` : "";
    const took = call.ended ? duration(call.result?.seconds ?? call.ended - call.started) : call.refused || call.reused ? "" : ({ running: "in flight", stopped: "broken off" })[status] ?? "";
    const name = call.kind === "model" ? `${call.role ?? "model"} · ${modelName(call.name)}` : `tool ${call.name}`;
    return h("details", { class: `call-part ${call.kind}`, "data-key": call.key },
      h("summary", {}, name, h("span", { class: "quiet" }, ` ${[took, waited, call.send > 1 ? `sent ${call.send} times` : "", call.reused ? "reused" : "", error ? `failed: ${error.kind}` : "", call.refused ? `refused: ${call.refused}` : ""].filter(Boolean).join(" · ")}`)),
      (call.messages ?? []).map((message) => h("div", { class: "message" }, h("b", {}, message.role ?? "message"), h("pre", {}, text(message)))),
      call.arguments ? h("div", { class: "message" }, h("b", {}, "arguments"), h("pre", {}, pretty(call.arguments).slice(0, LONGEST))) : null,
      reply ? h("div", { class: "message reply" }, h("b", {}, "reply"), h("pre", {}, text(reply))) : null,
      error ? h("p", { class: "alert" }, `${error.kind}: ${error.message}`) : null,
      call.kind === "tool" && call.result && !error ? h("div", { class: "message reply" }, h("b", {}, "result"), h("pre", {}, pretty(call.result.text ?? call.result.content ?? call.result.output ?? call.result).slice(0, LONGEST))) : null);
  }

  /** The words of a message; the calls of tools that it asks for stay JSON. */
  const text = (message) => (typeof message === "string" ? message
    : [message.text, pretty(message.tool_calls?.length ? message.tool_calls : null)].filter(Boolean).join("\n")).slice(0, LONGEST);
  const field = (name, content) => h("div", { class: "field" }, h("h3", {}, name), h("div", {}, content));
  const taskLink = (id) => h("a", { class: "cite", href: `#task/${id}` }, id);
  const block = (name, words, kind = "") => (words ? field(name, h("pre", { class: kind }, words.length > LONGEST ? `${words.slice(0, LONGEST)}… (${count(words.length - LONGEST)} more characters in the record)` : words)) : null);

  /** An order on the record: its words, whether it was accepted, and why not. */
  function orderWords({ order, text: words, verdict, reason }) {
    const name = { tell: "Words to the worker", stop: "Stop", restart: "Restart" }[order] ?? order;
    return `${name}${words ? ` “${words}”` : ""}: ${verdict.replaceAll("_", " ")}.${verdict !== "accepted" && reason ? ` ${reason}` : ""}`;
  }

  /** Forms for one task: tell and stop, restart, and a fork from here. They stay as they are while the task changes. */
  function makeOrders(id) {
    const note = h("p", { class: "quiet", role: "status" });
    let status = null;
    const send = async (action, values, field, accepted) => {
      const before = status;
      note.textContent = "";
      try {
        const made = await source.act(action, values);
        if (action === "fork") location.assign(runAddress(made.run));
        if (field) field.value = "";
        // Once the task has changed, that says more.
        if (status === before) note.textContent = made.verdict === "accepted" ? `Accepted: ${accepted}` : made.reason || "Sent.";
      } catch (error) {
        note.textContent = error.message;
      }
    };
    const path = `tasks/${encodeURIComponent(id)}`;
    const button = (name, act) => h("button", { type: "button", onclick: act }, name);
    const form = (...parts) => h("form", { class: "orders", onsubmit: (event) => event.preventDefault() }, parts);
    const words = h("textarea", { rows: 2, placeholder: "What the worker should know, or why you stop it", "aria-label": "Words to the worker" });
    const instruction = h("textarea", { rows: 2, placeholder: "A new instruction (optional)", "aria-label": "A new instruction (optional)" });
    const said = (field) => field.value.trim();
    const tell = button("Tell the worker", () => (said(words) ? send(`${path}/tell`, { text: said(words) }, words, "the worker has it.") : words.focus()));
    const stop = button("Stop", () => send(`${path}/stop`, said(words) ? { reason: said(words) } : {}, words, `${id} is stopped.`));
    const restart = button("Restart", () =>
      send(`${path}/restart`, said(instruction) ? { instruction: said(instruction) } : {}, instruction, `${id} runs again when the calls in flight have ended.`));
    const fork = button("Fork from here", () => send("fork", { at: id }));
    const running = form(words, h("div", { class: "buttons" }, tell, stop));
    const summary = h("summary", {});
    const again = h("details", { class: "orders-part" }, summary, form(instruction, h("div", { class: "buttons" }, restart, fork)));
    return {
      box: h("div", { class: "task-orders" }, running, again, note),
      update(task, state) {
        if (status !== null && status !== task.status) note.textContent = "";
        status = task.status;
        const ended = ["done", "failed", "escalated", "skipped"].includes(task.status);
        const takes = (order) => (state.orders ?? []).includes(order);
        tell.hidden = ended || !takes("tell");
        stop.hidden = ended || !takes("stop");
        running.hidden = tell.hidden && stop.hidden;
        restart.hidden = instruction.hidden = !takes("restart");
        fork.hidden = !ended || Boolean(task.depth);
        again.hidden = restart.hidden && fork.hidden;
        summary.textContent = fork.hidden ? "Restart" : restart.hidden ? "Fork from here" : "Restart, or fork from here";
      },
    };
  }

  return {
    box,
    show,
    hide() {
      shown = null;
      box.hidden = true;
    },
    get task() {
      return shown;
    },
  };
}
