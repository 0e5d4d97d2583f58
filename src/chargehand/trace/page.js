"use strict";
// Adds hover details, filters and opening a task by its link; the page says everything without it.
(() => {
  const run = JSON.parse(document.getElementById("data").textContent);
  const tasks = new Map(run.tasks.map((task) => [task.id, task]));
  const tip = document.getElementById("tip");
  // The browser's own slow tooltips stay for readers without scripts.
  const calls = new Map();
  for (const title of document.querySelectorAll("svg title")) {
    calls.set(title.parentElement, title.textContent);
    title.remove();
  }

  const seconds = (task) =>
    task.started && task.ended ? `${(task.ended - task.started).toFixed(1)} s` : "";

  const say = (task) =>
    [
      [task.id, task.worker, task.status].join(" · "),
      [seconds(task), task.tokens ? `${task.tokens.toLocaleString("en")} tokens` : "",
        task.attempts > 1 ? `${task.attempts} attempts` : ""].filter(Boolean).join(" · "),
      task.says,
    ].filter(Boolean).join("\n");

  const show = (event) => {
    const place = event.target.closest("[data-task]");
    const task = place && tasks.get(place.dataset.task);
    const call = calls.get(event.target);
    tip.hidden = !task && !call;
    if (tip.hidden) return;
    tip.textContent = call ? `${call}${task ? `\n${task.id} · ${task.worker}` : ""}` : say(task);
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 16, innerWidth - box.width - 12);
    const below = event.clientY + 18;
    tip.style.left = `${Math.max(left, 12)}px`;
    tip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 12 : below}px`;
  };
  for (const drawing of document.querySelectorAll("svg")) {
    drawing.addEventListener("pointermove", show);
    drawing.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  const open = () => {
    const task = document.getElementById(location.hash.slice(1));
    if (task instanceof HTMLDetailsElement) task.open = true;
  };
  addEventListener("hashchange", open);
  open();

  for (const bar of document.querySelectorAll(".filter")) {
    bar.hidden = false;
    const input = bar.querySelector("input");
    const buttons = [...bar.querySelectorAll("button")];
    const rows = [...bar.parentElement.querySelectorAll(".task, .events tbody tr")];
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const apply = () => {
      const wanted = input.value.trim().toLowerCase();
      const on = new Set(buttons.filter((b) => b.ariaPressed === "true").map((b) => b.dataset.status));
      rows.forEach((row, n) => {
        row.hidden = !texts[n].includes(wanted) || (on.size > 0 && !on.has(row.dataset.status));
      });
    };
    input.addEventListener("input", apply);
    for (const button of buttons) {
      button.addEventListener("click", () => {
        button.ariaPressed = button.ariaPressed === "true" ? "false" : "true";
        apply();
      });
    }
  }
})();
