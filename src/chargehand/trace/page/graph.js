// The plan as the server laid it out -> a drawing that can be enlarged; the critical path is drawn stronger.
import { h, fill } from "./dom.js";
import { GLYPHS, cut, duration } from "./words.js";

const MARGIN = 8;
// At a smaller size the names cannot be read: then the drawing is wider than the page, and scrolled.
const READABLE = 0.75;

export function graph() {
  const box = h("div", { class: "scroll graph-box", tabindex: 0 });
  const tools = h("div", { class: "zoom" },
    h("button", { type: "button", "aria-label": "Smaller", onclick: () => scale(1 / 1.3) }, "−"),
    h("button", { type: "button", "aria-label": "Larger", onclick: () => scale(1.3) }, "+"),
    h("button", { type: "button", onclick: () => fit() }, "Fit"));
  let drawing = null;
  let size = null;
  let zoom = 1;

  function scale(by) {
    zoom = Math.min(Math.max(zoom * by, 0.08), 3);
    if (!drawing) return;
    drawing.setAttribute("width", size[0] * zoom);
    drawing.setAttribute("height", size[1] * zoom);
  }

  function fit(least = 0) {
    if (!size) return;
    zoom = 1;
    scale(Math.max(Math.min((box.clientWidth - 4) / size[0], 1), least));
  }

  function update(state) {
    const laid = state.graph;
    tools.hidden = !laid;
    if (!laid) {
      size = null;
      const words = state.tasks.size > 1 ? "This plan is too large to draw. The timeline has every task." : "A plan of one task has no graph.";
      fill(box, h("p", { class: "quiet" }, words));
      return;
    }
    const first = size === null;
    const critical = new Set(laid.critical);
    size = [laid.width + 2 * MARGIN, laid.height + 2 * MARGIN];
    drawing = h("svg", {
      class: "graph", viewBox: `${-MARGIN} ${-MARGIN} ${size[0]} ${size[1]}`, role: "group",
      "aria-label": `Plan of ${laid.nodes.length} tasks`,
    }, laid.edges.map(edge), laid.nodes.map((place) => node(state.tasks.get(place[0]), place, laid.node, critical)));
    fill(box, drawing);
    if (first) fit(READABLE);
    else scale(1);
  }

  function edge([points, isCritical]) {
    const [[startX, startY], ...rest] = points;
    let [x, y] = [startX, startY];
    let path = `M${x} ${y}`;
    rest.forEach(([toX, toY], number) => {
      // Every second stretch crosses a layer and is straight.
      const middle = (x + toX) / 2;
      path += number % 2 ? `L${toX} ${toY}` : `C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
      [x, y] = [toX, toY];
    });
    return h("path", { class: `edge${isCritical ? " critical" : ""}`, d: `${path}M${x - 6} ${y - 4}L${x} ${y}L${x - 6} ${y + 4}` });
  }

  function node(task, [id, x, y], [width, height], critical) {
    if (!task) return null;
    const took = task.started === null ? "" : ` · ${duration(task.seconds)}`;
    const tries = task.attempts.length > 1 ? ` · try ${task.attempts.length}` : "";
    const word = task.asks ? "needs you" : task.status === "done" ? cut(task.worker, 16) : task.status;
    // A link inside a drawing has to be an SVG element.
    const link = document.createElementNS("http://www.w3.org/2000/svg", "a");
    link.setAttribute("href", `#task/${id}`);
    link.setAttribute("class", `node s-${task.status}${critical.has(id) ? " critical" : ""}`);
    link.setAttribute("aria-label", `${id}, ${task.worker}, ${task.status}`);
    link.append(
      h("rect", { class: "box", x, y, width, height, rx: 9 }),
      h("rect", { class: "strip", x, y: y + 10, width: 4, height: height - 20, rx: 2 }),
      h("text", { class: "name", x: x + 14, y: y + 21 }, cut(id, 17)),
      h("text", { class: "word", x: x + width - 12, y: y + 21 }, task.asks ? "◆" : GLYPHS[task.status]),
      h("text", { class: "small", x: x + 14, y: y + 39 }, `${word}${took}${tries}`));
    return link;
  }

  return { box, tools, update };
}
