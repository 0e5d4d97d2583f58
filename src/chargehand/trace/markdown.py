"""Markdown a model wrote -> HTML that can do nothing but be read.

Every piece of text is escaped exactly once, links go to http, https and mailto only, images become links, and every
pattern stops at the character it starts with, so that no text takes more than linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from chargehand.text.citation import Citations, Named

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(\S.*)")
_ITEM = re.compile(r"( *)(?:([-*+])|(\d{1,9})[.)])\s+(\S.*)")
_RULE = re.compile(r" {0,3}(?:-{3,}|\*{3,}|_{3,})\s*")
_TABLE_RULE = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\(([^()\s]*)\)")
_SAFE_ADDRESS = re.compile(r"https?://|mailto:", re.IGNORECASE)
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
_EMPHASIS = re.compile(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
# Stands for a link that is made already; it is taken out of every text first.
_MARK = "\ufdd0"
_HELD = re.compile(_MARK)
_DEEPEST_LIST = 6


def to_html(text: str, anchors: Mapping[str, str] | None = None) -> str:
    """The text as HTML. `[t3]` becomes a link to `anchors["t3"]`, a fragment of the page, where there is one."""
    return _Blocks(text.splitlines(), anchors or {}).render()


class _Blocks:
    """One walk over the lines; each `_take` method consumes at least one."""

    def __init__(self, lines: list[str], anchors: Mapping[str, str]) -> None:
        self._lines = lines
        self._anchors = anchors
        self._citations = Citations(anchors)
        self._at = 0
        self._out: list[str] = []

    def render(self) -> str:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
            elif fence := _FENCE.match(line):
                self._take_code(fence[1])
            elif heading := _HEADING.fullmatch(line):
                self._take_heading(len(heading[1]), heading[2])
            elif _RULE.fullmatch(line):
                self._at += 1
                self._out.append("<hr>")
            elif _ITEM.fullmatch(line):
                self._take_list()
            elif line.lstrip().startswith(">"):
                self._take_quote()
            elif "|" in line and self._at + 1 < len(self._lines) and self._is_table_rule(self._lines[self._at + 1]):
                self._take_table()
            else:
                self._take_paragraph()
        return "\n".join(self._out)

    @staticmethod
    def _is_table_rule(line: str) -> bool:
        return "|" in line and "-" in line and len(line) < 1000 and _TABLE_RULE.fullmatch(line) is not None

    def _take_while(self, wanted: Callable[[str], object]) -> list[str]:
        start = self._at
        while self._at < len(self._lines) and wanted(self._lines[self._at]):
            self._at += 1
        return self._lines[start : self._at]

    def _take_code(self, fence: str) -> None:
        self._at += 1
        body = self._take_while(lambda line: not line.strip().startswith(fence))
        self._at += 1
        self._out.append(f"<pre><code>{escape(chr(10).join(body))}</code></pre>")

    def _take_heading(self, level: int, text: str) -> None:
        self._at += 1
        # The page has its own first two levels.
        level = min(level + 2, 6)
        self._out.append(f"<h{level}>{self._inline(text.rstrip('# '))}</h{level}>")

    def _take_quote(self) -> None:
        lines = self._take_while(lambda line: line.lstrip().startswith(">"))
        text = "\n".join(line.lstrip()[1:].strip() for line in lines)
        self._out.append(f"<blockquote><p>{self._inline(text)}</p></blockquote>")

    def _take_paragraph(self) -> None:
        first = self._lines[self._at]
        self._at += 1
        rest = self._take_while(lambda line: line.strip() and not _begins_block(line))
        self._out.append(f"<p>{self._inline(chr(10).join([first, *rest]))}</p>")

    def _take_table(self) -> None:
        head = self._lines[self._at]
        self._at += 2
        rows = self._take_while(lambda line: "|" in line)
        cells = "".join(f'<th scope="col">{self._inline(cell)}</th>' for cell in _cells(head))
        body = "".join(
            "<tr>" + "".join(f"<td>{self._inline(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in rows
        )
        self._out.append(
            f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def _take_list(self) -> None:
        """Items nest by indentation; a line that is no item and not blank continues the one before."""
        out: list[str] = []
        open_lists: list[tuple[int, str]] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            item = _ITEM.fullmatch(line)
            if item is None:
                if line.strip() and line.startswith("  ") and open_lists:
                    out.append(" " + self._inline(line.strip()))
                    self._at += 1
                    continue
                break
            indent, tag = len(item[1]), "ul" if item[2] else "ol"
            while open_lists and (
                indent < open_lists[-1][0] or (indent == open_lists[-1][0] and tag != open_lists[-1][1])
            ):
                out.append(f"</li></{open_lists.pop()[1]}>")
            if open_lists and (indent == open_lists[-1][0] or len(open_lists) == _DEEPEST_LIST):
                out.append("</li><li>")
            else:
                start = f' start="{int(item[3])}"' if item[3] and int(item[3]) != 1 else ""
                out.append(f"<{tag}{start}><li>")
                open_lists.append((indent, tag))
            out.append(self._inline(item[4]))
            self._at += 1
        out += [f"</li></{tag}>" for _, tag in reversed(open_lists)]
        self._out.append("".join(out))

    def _inline(self, text: str) -> str:
        # Every second part is code: nothing in it is markup.
        parts = _CODE.split(text)
        return "".join(f"<code>{escape(part)}</code>" if n % 2 else self._words(part) for n, part in enumerate(parts))

    def _words(self, text: str) -> str:
        """Links and citations first, on raw text, each held by a mark while the words around them get emphasis."""
        out: list[str] = []
        made: list[str] = []
        end = 0
        for link in _LINK.finditer(text):
            out.append(self._mark_citations(text[end : link.start()], made))
            label, address = link[1] or link[2], link[2]
            if _SAFE_ADDRESS.match(address):
                made.append(f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{escape(label)}</a>')
                out.append(_MARK)
            else:
                out.append(self._mark_citations(f"[{label}]", made, otherwise=label))
            end = link.end()
        out.append(self._mark_citations(text[end:], made))
        waiting = iter(made)
        return _HELD.sub(lambda _: next(waiting), _emphasise("".join(out)))

    def _mark_citations(self, text: str, made: list[str], otherwise: str | None = None) -> str:
        """The text with a mark for each citation, whose links are put into `made`."""
        text = text.replace(_MARK, "")
        out: list[str] = []
        end = 0
        for citation in self._citations.find(text):
            if citation.tasks:
                out += [text[end : citation.start], _MARK]
                made.append("".join(self._link_citation(name) for name in citation.names))
                end = citation.end
        if not out and otherwise is not None:
            return otherwise.replace(_MARK, "")
        return "".join([*out, text[end:]])

    def _link_citation(self, name: Named) -> str:
        """A task as a link, a range as its two ends, and what is neither as it is."""
        if not name.tasks:
            return f" [{escape(name.text)}]"
        ends = dict.fromkeys((name.tasks[0], name.tasks[-1]))
        return "\u2013".join(f'<a class="cite" href="#{escape(self._anchors[id])}">{escape(id)}</a>' for id in ends)


def _emphasise(text: str) -> str:
    return _EMPHASIS.sub(r"<em>\1</em>", _STRONG.sub(r"<strong>\1</strong>", escape(text)))


def _begins_block(line: str) -> object:
    return _FENCE.match(line) or _HEADING.fullmatch(line) or _ITEM.fullmatch(line) or line.lstrip().startswith(">")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
