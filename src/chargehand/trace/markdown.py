"""Markdown that a model wrote -> HTML without scripts, forms or images.

markdown-it parses and escapes. Raw HTML and entities are plain text, an image is a link. Links go to http,
https, mailto and to places in the page. A definition (`[name]: url`) and indented text stay text, so that neither can
hide a citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from chargehand.text.citation import Citation, Citations
from chargehand.text.escaping import show_controls

_LEFT_OUT = ["html_block", "html_inline", "image", "entity", "reference", "code"]
_OUTSIDE = re.compile(r"https?://|mailto:", re.IGNORECASE)
# The parser leaves out deeper nesting, because parsing time grows with depth.
_DEEPEST = 12


def to_html(text: str, anchors: Mapping[str, str] | None = None) -> str:
    """The text as HTML. `[t3]` becomes a link to `anchors["t3"]`, a fragment of the page, if there is one."""
    shown = show_controls(text)
    parser = _parser()
    tokens = parser.parse(shown)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        return f"<pre>{escape(shown)}</pre>"
    links = _Links(anchors or {})
    for token in tokens:
        _fit_into_page(token)
        if token.children:
            token.children = list(links.replace(token.children))
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html.replace("<table>", '<div class="scroll"><table>').replace("</table>", "</table></div>").strip()


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    options = {"html": False, "xhtmlOut": False, "maxNesting": _DEEPEST}
    parser = MarkdownIt("commonmark", options).enable("table").disable(_LEFT_OUT)
    # The parser accepts every address. `_Links` checks them, and keeps only the words of a link that is not allowed.
    parser.validateLink = lambda url: True
    return parser


def _fit_into_page(token: Token) -> None:
    match token.type:
        case "heading_open" | "heading_close":
            # The page uses the first two levels itself.
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
        case "th_open":
            token.attrs = {"scope": "col"}
        case "td_open":
            # The page's policy allows no style attribute.
            token.attrs = {}
        case "fence":
            token.info = ""
        case _:
            pass


class _Links:
    """Makes links of citations of tasks and of safe addresses, and of nothing else."""

    def __init__(self, anchors: Mapping[str, str]) -> None:
        self._anchors = anchors
        self._citations = Citations(anchors)

    def replace(self, tokens: Sequence[Token]) -> Iterator[Token]:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            if token.type == "link_open":
                # Links do not nest.
                end = next(n for n in range(at, len(tokens)) if tokens[n].type == "link_close")
                yield from self._link(token, tokens[at + 1 : end])
                at = end
            elif token.type == "text":
                yield from self._cite(token.content)
            else:
                yield token
            at += 1

    def _link(self, opening: Token, inside: Sequence[Token]) -> Iterator[Token]:
        address = str(opening.attrs.get("href", ""))
        if _OUTSIDE.match(address):
            yield from _anchor(inside, href=address, rel="noopener noreferrer nofollow")
            return
        label = "".join(token.content for token in inside)
        named = next(self._citations.find(f"[{label}]"), None)
        if named is not None and named.tasks:
            yield from self._link_tasks(named)
        elif address.startswith("#"):
            yield from _anchor(inside, href=address)
        else:
            yield from inside

    def _cite(self, text: str) -> Iterator[Token]:
        end = 0
        for citation in self._citations.find(text):
            if citation.tasks:
                yield _words(text[end : citation.start])
                yield from self._link_tasks(citation)
                end = citation.end
        yield _words(text[end:])

    def _link_tasks(self, citation: Citation) -> Iterator[Token]:
        """A task as a link, a range as links to its two ends, anything else unchanged."""
        for name in citation.names:
            if not name.tasks:
                yield _words(f" [{name.text}]")
            for number, id in enumerate(dict.fromkeys((*name.tasks[:1], *name.tasks[-1:]))):
                if number:
                    yield _words("\u2013")
                yield from _anchor([_words(id)], **{"class": "cite", "href": f"#{self._anchors[id]}"})


def _anchor(inside: Sequence[Token], **attributes: str) -> Iterator[Token]:
    yield Token("link_open", "a", 1, attrs={**attributes})
    yield from inside
    yield Token("link_close", "a", -1)


def _words(text: str) -> Token:
    return Token("text", "", 0, content=text)
