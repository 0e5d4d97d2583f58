// Names, attributes and children -> elements. Text always becomes a text node, never markup.

const SVG = new Set(["svg", "g", "path", "rect", "text", "tspan", "line"]);

/** An element. Attributes named `on...` are listeners; `null`, `undefined` and `false` leave one out. */
export function h(name, attributes = {}, ...children) {
  const element = SVG.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what is inside an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Words with names between backticks as code. */
export const withCode = (text) => String(text).split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? h("code", {}, part) : part));

/** HTML that our own code made from Markdown: nothing of it is a script, a form or an image. */
export function prose(html) {
  const box = h("div", { class: "prose" });
  box.innerHTML = html;
  return box;
}

/** A redraw at most once a frame, however often it is asked for. */
export function onceAFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      draw();
    });
  };
}

/** A list of which only the rows in sight are elements. `row(index)` makes one; all are equally high. */
export function virtualList(height, row, label) {
  const inner = h("div", { class: "rows" });
  const box = h("div", { class: "virtual", tabindex: 0, role: "group", "aria-label": label }, inner);
  let length = 0;
  let shown = new Map();
  const draw = (fresh = false) => {
    const first = Math.max(Math.floor(box.scrollTop / height) - 10, 0);
    const last = Math.min(first + Math.ceil((box.clientHeight || 600) / height) + 20, length);
    const kept = new Map();
    for (let index = first; index < last; index += 1) {
      const known = fresh ? undefined : shown.get(index);
      const element = known ?? row(index);
      if (known === undefined) {
        element.style.transform = `translateY(${index * height}px)`;
        element.style.height = `${height}px`;
        const before = shown.get(index);
        const focused = before !== undefined && before === document.activeElement;
        if (before !== undefined) before.replaceWith(element);
        else inner.append(element);
        if (focused) element.focus({ preventScroll: true });
      }
      kept.set(index, element);
    }
    for (const [index, element] of shown) if (!kept.has(index)) element.remove();
    shown = kept;
  };
  box.addEventListener("scroll", onceAFrame(draw));
  new ResizeObserver(() => draw()).observe(box);
  return {
    box,
    /** Draw again: there are so many rows now. */
    update(number) {
      length = number;
      inner.style.height = `${number * height}px`;
      draw(true);
    },
    /** Bring a row into sight and give its element. */
    reach(index) {
      const top = index * height;
      if (top < box.scrollTop || top + height > box.scrollTop + box.clientHeight) {
        box.scrollTop = Math.max(top - box.clientHeight / 2, 0);
      }
      draw();
      return shown.get(index);
    },
  };
}
