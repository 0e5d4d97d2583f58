"""Markdown a model wrote, as HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargehand.trace.markdown import to_html
from chargehand.trace.page_state import LONGEST_ANSWER
from tests.counts import SOAK, count
from tests.pace import Timed

VOID = {"br", "hr"}
BETWEEN_BLOCKS = re.compile(r"(?<=>)\n(?=<)")
TAGS = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "em", "strong", "code", "pre", "blockquote", "hr", "br",
        "div", "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip


class Outline(HTMLParser):
    """The elements and attributes of a text, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.nests = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update((name, value or "") for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.nests = self.nests and bool(self.open) and self.open.pop() == tag


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("one\ntwo", "<p>one\ntwo</p>"),
        ("# Top", "<h3>Top</h3>"),
        ("**a** and *b*", "<p><strong>a</strong> and <em>b</em></p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("`a < *b*`", "<p><code>a &lt; *b*</code></p>"),
        ("- a\n- b\n  - c\n- d", "<ul><li>a</li><li>b\n<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("```py\n<b>\n```\nend", "<pre><code>&lt;b&gt;\n</code></pre><p>end</p>"),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"),
        ("[x](https://a.b/?c=d&e)", '<p><a href="https://a.b/?c=d&amp;e" rel="noopener noreferrer nofollow">x</a></p>'),
        ("[x](javascript:alert)", "<p>x</p>"),
        ("see [t1, t2], not [t9]", '<p>see <a class="cite" href="#task-1">t1</a>'
                                   '<a class="cite" href="#task-2">t2</a>, not [t9]</p>'),
    ],
)  # fmt: skip
def test_markdown_becomes_html(text: str, html: str) -> None:
    """The forms models use, each as expected."""
    assert BETWEEN_BLOCKS.sub("", to_html(text, {"t1": "task-1", "t2": "task-2"})) == html


T1, T2, T3 = (f'<a class="cite" href="#task-{n}">t{n}</a>' for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("so [t1; t2]", f"so {T1}{T2}"),
        ("so [t1][t2]", f"so {T1}{T2}"),
        ("so [t1-t3]", f"so {T1}\u2013{T3}"),
        ("so [t1, t9]", f"so {T1} [t9]"),
        ("so [t2](#somewhere)", f"so {T2}"),
        ("**so [t1]** and *so [t2]*", f"<strong>so {T1}</strong> and <em>so {T2}</em>"),
        ("`[t1]` is code", "<code>[t1]</code> is code"),
        (
            "**a [x](https://a.b) c**",
            '<strong>a <a href="https://a.b" rel="noopener noreferrer nofollow">x</a> c</strong>',
        ),
        ("[t1]: /x\n\nso [t1]", f"[t1]: /x</p>\n<p>so {T1}"),
        ("a\n\n    so [t1]", f"a</p>\n<p>so {T1}"),
    ],
)
def test_citations_of_known_tasks_are_links(text: str, html: str) -> None:
    """In every form an answer may have them in; never inside code, never for a task that is not there."""
    assert to_html(text, {"t1": "task-1", "t2": "task-2", "t3": "task-3"}) == f"<p>{html}</p>"


def test_a_table_becomes_a_table() -> None:
    """Head, rule and rows."""
    outline = Outline(to_html("| a | b |\n|---|:-:|\n| 1 | **2** |"))
    assert {"table", "th", "td", "strong"} <= outline.tags


@settings(deadline=None)
@given(st.text(alphabet="ab <>&\"'*_`[]()#-|>~1.!\n\u2028:/=", max_size=120))
def test_any_text_is_well_formed_and_harmless(text: str) -> None:
    """Only elements of ours, nested properly, and no attribute but ours."""
    outline = Outline(to_html(text, {"a": "task-1"}))
    assert outline.nests
    assert outline.open == []
    assert outline.tags <= TAGS
    assert {name for name, _ in outline.attributes} <= {"href", "rel", "class", "scope", "start"}


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["**a", "*a ", "[", "[a](", "`", "> ", "- a\n", "|", "|-", "# ", "  - a\n", "<"])
def test_time_grows_with_length_only(piece: str) -> None:
    """The longest answer a page takes is rendered in well under the time a quadratic pattern would take."""
    text = piece * (count(LONGEST_ANSWER) // len(piece))
    to_html(piece)
    with Timed(process_time) as took:
        to_html(text, {"a": "task-1"})
    assert took.within(5 if SOAK else 1)


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("a <img src=x onerror=y> b", "<p>a &lt;img src=x onerror=y&gt; b</p>"),
        ("![x](javascript:y)", "<p>!x</p>"),
        ("[x](JavaScript&colon;alert)", "<p>x</p>"),
        ("[x](data:text/html,y)", "<p>x</p>"),
        ("[x](//elsewhere.example)", "<p>x</p>"),
        ("[x](file.html)", "<p>x</p>"),
        ("<javascript:alert>", "<p>javascript:alert</p>"),
        ("[x](#part)", '<p><a href="#part">x</a></p>'),
        ('[x](https://a.b/"onclick="y)', '<p><a href="https://a.b/%22onclick=%22y" '
                                         'rel="noopener noreferrer nofollow">x</a></p>'),
        ("&#x202e; &lt;b&gt; \x1b[1m \u202e \0", "<p>&amp;#x202e; &amp;lt;b&amp;gt; \\x1b[1m \\u202e \\x00</p>"),
        ("```x\" onclick=y\n<i>\n```", "<pre><code>&lt;i&gt;\n</code></pre>"),
    ],
)  # fmt: skip
def test_hostile_markdown_is_only_text(text: str, html: str) -> None:
    """Raw HTML, other schemes, images, entities and control characters are shown, never obeyed."""
    assert to_html(text, {"t1": "task-1"}) == html


def test_an_image_becomes_a_link() -> None:
    """The page makes no request: an image is fetched only by who follows its link."""
    assert Outline(to_html("![x](https://a.b/c.png)")).tags == {"p", "a"}


@pytest.mark.parametrize("piece", ["> ", "- ", "1. "])
def test_text_that_is_nested_too_deeply_is_shown_as_it_is(piece: str) -> None:
    """Nothing an answer says is left out of the page."""
    assert "the point" in to_html(piece * 400 + "the point <b>")
