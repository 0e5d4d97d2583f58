// Open questions -> forms that show exactly what is asked and send the answer.
import { h, fill } from "./dom.js";
import { ask, post } from "./source.js";
import { several } from "./words.js";

/** The strip above a run: one form per open question. */
export function needsYou(source) {
  const box = h("div", { class: "needs-you" });
  const forms = new Map();
  return {
    box,
    update(state) {
      const open = new Set(state.questions.map((question) => question.id));
      for (const [id, form] of forms) {
        if (open.has(id)) continue;
        form.remove();
        forms.delete(id);
      }
      for (const question of state.questions) {
        if (forms.has(question.id)) continue;
        const form = questionForm(source, question, state);
        forms.set(question.id, form);
        box.append(form);
      }
      box.hidden = !forms.size;
    },
  };
}

// A longer plan is scrolled where it is.
const SHORT_PLAN = 25;
const TITLES = { plan: "Approve the plan", tool: "Approve a tool call", escalation: "A worker needs help", task: "A task for you" };

function questionForm(source, question, state) {
  const note = h("p", { class: "quiet", role: "status" });
  const send = async (answer) => {
    try {
      await source.act(`answers/${encodeURIComponent(question.id)}`, { answer });
      note.textContent = "Answered.";
    } catch (error) {
      note.textContent = [error.message, ...(error.problems ?? []).map((each) => each.message)].join(" ");
    }
  };
  const parts = source.act ? answerParts(question, state, send) : [h("p", { class: "quiet" }, `Answer it with: chargehand answer ${state.run} ${question.id}`)];
  return h("form", { class: "question", onsubmit: (event) => event.preventDefault() },
    h("h2", {}, `${TITLES[question.kind] ?? "A question"} `, question.kind === "plan" ? null : h("code", {}, question.id)),
    question.kind === "plan" && state.plan ? planTable(state.plan, question.prompt, state.request) : h("div", { class: "prompt" }, promptParts(question.prompt)), parts, note);
}

const HEADINGS = /^(Task \S+|Context|Done when|Arguments|What it has so far|Result of .*)\n/;

/** The text of a question: its parts below their headings, JSON as it is. */
const promptParts = (prompt) => prompt.trimEnd().split("\n\n").map((part) => {
  const heading = part.match(HEADINGS)?.[1];
  if (!heading) return h("p", {}, part);
  const words = part.slice(heading.length + 1);
  return [h("h3", {}, heading), /^[[{]/.test(words) ? h("pre", {}, words) : h("p", {}, words)];
});

function answerParts(question, state, send) {
  if (question.kind === "plan") return planParts(state, send);
  if (question.kind === "tool" && !question.answer_schema) return [choiceParts(send)];
  const read = question.answer_schema?.properties ? schemaFields(question.answer_schema) : textField(question.answer_schema);
  return [read.box, h("div", { class: "buttons" }, h("button", { type: "submit", class: "main", onclick: () => send(read.value()) }, "Answer"))];
}

function choiceParts(send) {
  const reason = h("input", { type: "text", placeholder: "Reason, if you reject it", "aria-label": "Reason" });
  return h("div", { class: "buttons" },
    h("button", { type: "submit", class: "main", onclick: () => send("approve") }, "Approve"),
    h("button", { type: "button", onclick: () => send(`reject ${reason.value}`.trim()) }, "Reject"), reason);
}

function textField(schema) {
  const words = h("textarea", { rows: 3, "aria-label": "Answer", placeholder: "Your answer" });
  return { box: words, value: () => (schema && schema.type !== "string" ? JSON.parse(words.value) : words.value) };
}

/** A form from the properties of a schema; what is no plain value is typed as JSON. */
function schemaFields(schema) {
  const fields = Object.entries(schema.properties).map(([name, part]) => {
    const field = part.enum
      ? h("select", { name }, part.enum.map((each) => h("option", { value: JSON.stringify(each) }, String(each))))
      : part.type === "boolean" ? h("input", { name, type: "checkbox" })
        : ["number", "integer"].includes(part.type) ? h("input", { name, type: "number", step: part.type === "integer" ? 1 : "any" })
          : h("textarea", { name, rows: part.type === "string" ? 1 : 3 });
    const read = () => {
      if (part.enum) return JSON.parse(field.value);
      if (part.type === "boolean") return field.checked;
      if (field.value === "") return undefined;
      return part.type === "string" ? field.value : JSON.parse(field.value);
    };
    const title = `${part.title ?? name}${schema.required?.includes(name) || part.type === "boolean" ? "" : " (optional)"}`;
    return { name, read, box: h("label", { class: part.type === "boolean" ? "check" : "" }, part.type === "boolean" ? [field, title] : [title, field], part.description ? h("small", {}, part.description) : null) };
  });
  return {
    box: h("div", { class: "fields" }, fields.map((each) => each.box)),
    value: () => Object.fromEntries(fields.map((each) => [each.name, each.read()]).filter(([, value]) => value !== undefined)),
  };
}

/** The plan as a table, with the last paragraph of the prompt: what running it takes. */
function planTable(plan, prompt, request) {
  const isLong = plan.tasks.length > SHORT_PLAN;
  const isOrdered = plan.tasks.some((task) => task.depends_on?.length);
  return [
    plan.goal === request ? null : h("p", { class: "goal" }, plan.goal),
    isLong ? h("p", { class: "quiet" }, `${several(plan.tasks.length, "task")}: scroll the table to see all of them.`) : null,
    h("div", { class: `scroll${isLong ? " tall" : ""}` }, h("table", { class: "task-table" },
      h("thead", {}, h("tr", {}, ["Task", "Worker", "Instruction", ...(isOrdered ? ["After"] : [])].map((each) => h("th", { scope: "col" }, each)))),
      h("tbody", {}, plan.tasks.map((task) => h("tr", {}, h("td", {}, task.id), h("td", {}, task.worker), h("td", {}, task.instruction),
        isOrdered ? h("td", {}, (task.depends_on ?? []).join(", ")) : null))))),
    h("p", { class: "quiet" }, prompt.trimEnd().split("\n\n").at(-1)),
  ];
}

/** The plan as JSON to edit; below it what is wrong with it, and what differs from the draft. */
export function planEditor(state) {
  const draft = JSON.stringify(state.plan ?? {}, null, 2);
  const text = h("textarea", { class: "plan", rows: 16, spellcheck: "false", "aria-label": "Plan as JSON" });
  text.value = draft;
  const said = h("div", { class: "plan-check", role: "status" });
  let timer = null;
  const check = async () => {
    let plan;
    try {
      plan = JSON.parse(text.value);
    } catch (error) {
      fill(said, h("p", { class: "alert" }, `Not JSON yet: ${error.message}`));
      return;
    }
    try {
      // A team that the server does not offer is its own.
      const isOffered = (await ask("/teams")).teams.some((team) => team.ref === state.team);
      const found = await post("/check", { plan, ...(isOffered ? { team: state.team } : {}) });
      const problems = found.problems ?? [];
      fill(said,
        problems.length ? h("ul", {}, problems.map((each) => h("li", { class: each.severity === "error" ? "alert" : "" }, `${each.severity}: ${each.message}`))) : h("p", { class: "quiet" }, "No problems."),
        changes(state.plan ?? {}, plan));
    } catch (error) {
      fill(said, h("p", { class: "alert" }, [error.message, ...error.problems.map((each) => each.message)].join(" ")));
    }
  };
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  });
  return {
    parts: [text, said],
    isDraft: () => text.value === draft,
    /** Calls `use` with the plan, if it is JSON. */
    read(use) {
      let plan;
      try {
        plan = JSON.parse(text.value);
      } catch (error) {
        fill(said, h("p", { class: "alert" }, `Not JSON: ${error.message}`));
        return;
      }
      use(plan);
    },
  };
}

function planParts(state, send) {
  const editor = planEditor(state);
  const reason = h("input", { type: "text", placeholder: "Reason, if you reject it", "aria-label": "Reason" });
  const approve = () => (editor.isDraft() ? send("approve") : editor.read(send));
  return [
    h("details", {}, h("summary", {}, "Edit the plan"), editor.parts),
    h("div", { class: "buttons" }, h("button", { type: "submit", class: "main", onclick: approve }, "Approve"),
      h("button", { type: "button", onclick: () => send(`reject ${reason.value}`.trim()) }, "Reject"), reason),
  ];
}

/** What differs between the drafted plan and the edited one: task by task, field by field. */
function changes(before, after) {
  const words = (value) => (typeof value === "string" ? value : JSON.stringify(value));
  const lines = [];
  const compare = (name, old, made) => {
    for (const field of new Set([...Object.keys(old), ...Object.keys(made)])) {
      if (field === "tasks" || JSON.stringify(old[field]) === JSON.stringify(made[field])) continue;
      lines.push(h("b", {}, `${name} · ${field}`));
      if (old[field] !== undefined) lines.push(h("del", {}, `- ${words(old[field])}`));
      if (made[field] !== undefined) lines.push(h("ins", {}, `+ ${words(made[field])}`));
    }
  };
  const byId = (plan) => new Map((Array.isArray(plan.tasks) ? plan.tasks : []).map((task) => [task?.id, task ?? {}]));
  const [drafted, edited] = [byId(before), byId(after)];
  compare("plan", before, after);
  for (const [id, task] of drafted) {
    if (edited.has(id)) compare(id, task, edited.get(id));
    else lines.push(h("b", {}, `${id} · removed`), h("del", {}, `- ${task.instruction}`));
  }
  for (const [id, task] of edited) if (!drafted.has(id)) lines.push(h("b", {}, `${id} · added`), h("ins", {}, `+ ${task.instruction}`));
  return lines.length ? h("div", { class: "diff", "aria-label": "Changes to the draft" }, lines.slice(0, 400)) : null;
}
