// The text of an answer that is being written -> elements. Of its Markdown only what answers mostly have: headings, lists,
// tables, quotes, code, citations. The finished answer comes as HTML.
import { h } from "./dom.js";

const KINDS = [
  ["heading", /^#{1,6}\s+/],
  ["table", /^\s*\|/],
  ["blockquote", /^\s*>\s?/],
  ["ul", /^\s*[-*+]\s+/],
  ["ol", /^\s*\d+[.)]\s+/],
];
const BETWEEN_CELLS = /^[\s|:-]+$/;
const MARKED = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\s][^*\n]*\*|\[[^[\]\n]+\])/;

export function draftProse(text, tasks) {
  return h("div", { class: "prose draft" }, blocksOf(text).map(([kind, lines]) => element(kind, lines, (words) => inline(words, tasks))));
}

/** Lines that follow each other and are of one kind, without the marks at their beginning. */
function blocksOf(text) {
  const blocks = [];
  let kind = "";
  for (const line of text.split("\n")) {
    const isFence = /^\s*```/.test(line);
    if (kind === "pre") {
      if (isFence) kind = "";
      else blocks.at(-1)[1].push(line);
      continue;
    }
    const [found, mark] = isFence ? ["pre"] : !line.trim() ? [""] : KINDS.find(([, begin]) => begin.test(line)) ?? ["p"];
    const rest = mark && found !== "table" ? line.replace(mark, "") : line;
    if (found === "p" && (kind === "ul" || kind === "ol")) {
      blocks.at(-1)[1].push(`${blocks.at(-1)[1].pop()} ${line.trim()}`);
      continue;
    }
    if (found === "heading") blocks.push([`h${Math.min(line.indexOf(" ") + 2, 6)}`, [rest]]);
    else if (found && found !== (mark && kind === "" ? blocks.at(-1)?.[0] : kind)) blocks.push([found, isFence ? [] : [rest]]);
    else if (found) blocks.at(-1)[1].push(rest);
    kind = found;
  }
  return blocks;
}

function element(kind, lines, words) {
  switch (kind) {
    case "pre":
      return h("pre", {}, h("code", {}, lines.join("\n")));
    case "ul":
    case "ol":
      return h(kind, {}, lines.map((line) => h("li", {}, words(line))));
    case "table":
      return table(lines, words);
    case "blockquote":
      return h(kind, {}, h("p", {}, words(lines.join("\n"))));
    default:
      return h(kind, {}, words(lines.join("\n")));
  }
}

function table(lines, words) {
  const rows = lines.filter((line) => !BETWEEN_CELLS.test(line)).map((line) => line.trim().replace(/^\||\|$/g, "").split("|"));
  const row = (cells, name, attributes) => h("tr", {}, cells.map((cell) => h(name, attributes, words(cell.trim()))));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, rows.slice(0, 1).map((cells) => row(cells, "th", { scope: "col" }))),
    h("tbody", {}, rows.slice(1).map((cells) => row(cells, "td")))));
}

function inline(text, tasks) {
  return text.split(MARKED).flatMap((part, index) => {
    if (index % 2 === 0) return part;
    if (part.startsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.startsWith("**")) return h("strong", {}, part.slice(2, -2));
    if (part.startsWith("*")) return h("em", {}, part.slice(1, -1));
    const ids = part.slice(1, -1).split(/\s*[,;]\s*/);
    return ids.every((id) => tasks.has(id)) ? ids.map((id) => h("a", { class: "cite", href: `#task/${id}` }, id)) : part;
  });
}
