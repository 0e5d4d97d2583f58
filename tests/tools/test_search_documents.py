"""search_documents finds the passages that fit, with the lines they are on, in whatever the documents are."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chargehand.tools import BUILTIN, ToolContext, call, documents, passages, still_valid
from chargehand.tools import recorded_reads as reading
from chargehand.values.effect import ToolResult
from chargehand.values.request import Material

FILLER = "The weather was fine and nothing happened that day in the village.\n\n"


def given_docs(root: Path) -> ToolContext:
    return ToolContext(material=(Material(name="docs", path=str(root)),))


def search(root: Path, query: str, **more: object) -> ToolResult:
    return asyncio.run(call(BUILTIN["search_documents"], {"query": query, **more}, given_docs(root)))


def found(root: Path, query: str, **more: object) -> list[str]:
    """The headings of the passages found."""
    result = search(root, query, **more)
    assert result.error is None, result.error
    return [block.split("\n")[0] for block in result.text.split("\n\n") if block.startswith("docs/")]


def test_the_passage_that_fits_comes_first_with_its_lines(tmp_path: Path) -> None:
    """Rare words count more than common ones, and the reference leads to the passage."""
    body = FILLER * 40 + "Termination requires ninety days of written notice.\n\n" + FILLER * 40
    (tmp_path / "contract.md").write_text(body)
    (tmp_path / "other.txt").write_text(FILLER * 40)
    result = search(tmp_path, "How many days of notice for termination?", most=3)
    head = result.text.split("\n")[0]
    name, _, extent = head.rpartition(":")
    first, last = map(int, extent.split("-"))
    assert name == "docs/contract.md"
    assert "ninety days" in "\n".join(body.split("\n")[first - 1 : last])
    assert len(found(tmp_path, "weather", most=3)) == 3


def test_bm25_ranks_as_the_formula_says() -> None:
    """More of a word beats less, a short passage beats a long one, a rare word beats a common one."""
    texts = {
        "many": "apple apple apple pear",
        "once": "apple plum pear pear",
        "long": "apple " + "filler " * 60,
        "rare": "quince pear pear pear",
    }
    index = passages.PassageIndex(passages.Passage(name, 1, 1, text) for name, text in texts.items())
    assert [each.name for each in index.rank("apple", 9)] == ["many", "once", "long"]
    assert index.rank("apple quince", 1)[0].name == "rare"
    assert index.rank("nothing", 9) == []


def test_order_is_the_same_every_time(tmp_path: Path) -> None:
    """Equally good passages come in the order of the files, whatever was written first."""
    names = [f"{number:02}.txt" for number in range(20)]
    random.Random(7).shuffle(names)
    for name in names:
        (tmp_path / name).write_text("the same words")
    assert found(tmp_path, "same words", most=5) == [f"docs/{number:02}.txt:1-1" for number in range(5)]


@pytest.mark.parametrize(
    ("data", "query"),
    [
        ("blåbær på fjellet".encode(), "blåbær"),
        ("blåbær på fjellet".encode("utf-8-sig"), "BLÅBÆR"),
        ("blåbær på fjellet".encode("utf-16"), "blåbær"),
        ("blåbær på fjellet".encode("utf-32"), "blåbær"),
        ("blåbær på fjellet".encode("latin-1"), "blåbær"),
        ("“café” costs €5".encode("cp1252"), "cafe"),
        (bytes(range(1, 256)) + b" needle", "needle"),
        ("東京の天気は晴れ".encode(), "天気"),
        ("서울 날씨".encode(), "날씨"),
        (b"snake_case_name = 1", "case name"),
        (b"one\r\ntwo contracts\r\nthree", "contract"),
        (b"<html>\n<body><p>hidden <b>trea</b>sure", "treasure"),
    ],
)
def test_odd_encodings_and_scripts_are_found(tmp_path: Path, data: bytes, query: str) -> None:
    """In any usual encoding, without case and accents, in scripts without blanks, in code and in HTML."""
    (tmp_path / "x.html").write_bytes(data)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0\0" + query.encode())
    assert [head.rpartition(":")[0] for head in found(tmp_path, query)] == ["docs/x.html"]


def test_html_is_searched_as_text_by_its_own_lines(tmp_path: Path) -> None:
    """Scripts are not found, and the line is that of the source."""
    (tmp_path / "page.html").write_text("<html><script>\nneedle()\n</script>\n<p>\nthe needle\n</p>")
    assert found(tmp_path, "needle") == ["docs/page.html:5-5"]
    (tmp_path / "page.html").write_text("<html><script>\nneedle()\n</script>\n")
    assert found(tmp_path, "needle") == []


def test_one_enormous_line_becomes_several_passages(tmp_path: Path) -> None:
    """Each of bounded size, all on that line."""
    (tmp_path / "min.js").write_text("first\n" + "x = 1; " * 100_000 + "needle\nlast")
    result = search(tmp_path, "needle")
    assert result.text.startswith("docs/min.js:2-2\n")
    assert len(result.text) < 3000


def test_a_word_on_a_cut_is_found() -> None:
    """A long line is cut at blanks, without them between words: every word is in a passage, and nothing is lost."""
    spaced = "".join(f"word{number} " for number in range(1000)).rstrip()
    for line in (spaced, spaced.replace(" ", ";"), "x" * 5000, "天" * 5000):
        parts = [each.text for each in passages.passages("f", [line])]
        assert "".join(parts) == line
        assert len(parts) > 3
        assert max(map(len, parts)) <= passages.MOST
    for line in (spaced, spaced.replace(" ", ";")):
        index = passages.PassageIndex(passages.passages("f", [line]))
        assert all(len(index.rank(f"word{number}", 9)) == 1 for number in range(1000))


def test_files_that_are_no_text_are_told(tmp_path: Path) -> None:
    """A worker must not take them for searched: a few by name, the others counted, before other notes."""
    (tmp_path / "agreement.pdf").write_bytes(b"%PDF-1.7\nneedle")
    nothing, unread = search(tmp_path, "needle").text.split("\n")
    assert "docs/" not in nothing
    assert "docs/agreement.pdf" in unread
    (tmp_path / "marked.txt").write_bytes("needle".encode("utf-16-le"))
    for number in range(5):
        (tmp_path / f"p{number}.png").write_bytes(b"needle\0")
    (tmp_path / "text.txt").write_text("needle")
    result = search(tmp_path, "needle")
    assert result.text == (
        "docs/text.txt:1-1\nneedle\n[not text, so not searched: docs/agreement.pdf, docs/marked.txt, docs/p0.png, "
        "docs/p1.png, docs/p2.png and 2 more]"
    )
    files = asyncio.run(call(BUILTIN["search_files"], {"query": "nothing"}, given_docs(tmp_path)))
    assert "docs/agreement.pdf" in files.text.splitlines()[1]


def test_a_gigabyte_is_capped_with_a_note(tmp_path: Path) -> None:
    """Large files are named as left out, the rest is searched, and memory stays bounded."""
    for number in range(10):
        with (tmp_path / f"big{number}.txt").open("wb") as big:
            big.truncate(100_000_000)
    (tmp_path / "small.txt").write_text("the needle")
    tracemalloc.start()
    result = search(tmp_path, "needle")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.text.startswith("docs/small.txt:1-1\nthe needle\n")
    notes = result.text.splitlines()[2:]
    assert notes[0].startswith("[docs/big0.txt is 100 MB")
    assert "5 more" in notes[-1]
    assert peak < 50_000_000


def test_what_is_over_the_total_is_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures take no room from the texts."""
    monkeypatch.setattr(reading, "MAX_SEARCHED_BYTES", 1000)
    (tmp_path / "a.png").write_bytes(b"\0" * 5000)
    for name in "bcd":
        (tmp_path / f"{name}.txt").write_text(f"needle {name} " + "x" * 480)
    result = search(tmp_path, "needle", most=9)
    assert result.text.count(".txt:1-1\n") == 2
    assert "docs/d.txt" in result.text.splitlines()[-1]
    assert found(tmp_path, "needle", pattern="d.txt") == ["docs/d.txt:1-1"]


def test_an_index_is_made_once_for_the_same_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again when one has changed; old ones are let go of."""
    made: list[int] = []

    class Counted(passages.PassageIndex):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)  # type: ignore[arg-type]
            made.append(len(self.passages))

    monkeypatch.setattr(documents, "PassageIndex", Counted)
    monkeypatch.setattr(documents, "MAX_KEPT", 100)
    monkeypatch.setattr(documents, "_KEPT", documents._Kept())  # pyright: ignore[reportPrivateUsage]
    (tmp_path / "a.txt").write_text("one needle" + " " * 80)
    assert found(tmp_path, "needle") == found(tmp_path, "one") == ["docs/a.txt:1-1"]
    assert made == [1]
    (tmp_path / "a.txt").write_text("two needle" + " " * 80)
    assert "two needle" in search(tmp_path, "needle").text
    (tmp_path / "a.txt").write_text("one needle" + " " * 80)
    assert "one needle" in search(tmp_path, "needle").text
    assert made == [1, 1, 1]


def test_what_was_read_is_recorded(tmp_path: Path) -> None:
    """A rerun uses the result again until a document that fits the pattern has changed."""
    (tmp_path / "a.md").write_text("needle")
    (tmp_path / "b.txt").write_text("other")
    result = search(tmp_path, "needle", pattern="*.md")
    assert still_valid(result.reads, given_docs(tmp_path))
    (tmp_path / "b.txt").write_text("changed")
    assert still_valid(result.reads, given_docs(tmp_path))
    (tmp_path / "a.md").write_text("needles")
    assert not still_valid(result.reads, given_docs(tmp_path))


def test_bad_input_is_told(tmp_path: Path) -> None:
    """Each in its words."""
    assert search(tmp_path, "  ").code == "wrong_arguments"
    assert search(tmp_path, "x" * 1001).code == "wrong_arguments"
    assert search(tmp_path, "x", most=0).code == "wrong_arguments"
    assert found(tmp_path, "x") == []
    bare = asyncio.run(call(BUILTIN["search_documents"], {"query": "x"}, ToolContext()))
    assert bare.code == "unavailable"


@pytest.mark.parametrize("pattern", ["*.{md,txt}", "{a,b}.md", "docs/{a,x}.*"])
def test_a_pattern_may_name_alternatives(tmp_path: Path, pattern: str) -> None:
    """`{a,b}` stands for either."""
    (tmp_path / "a.md").write_text("needle")
    (tmp_path / "c.py").write_text("needle")
    assert found(tmp_path, "needle", pattern=pattern) == ["docs/a.md:1-1"]


@pytest.mark.parametrize(
    "query",
    [
        'needle"', '"needle', "needle*", "needle OR", "NOT needle", "AND", "NEAR(needle, 2)", "words:needle",
        "{words}:needle", "^needle", "needle'; DROP TABLE passage; --", "(needle", "-needle", "needle \0 \ud800",
        '" OR "" OR needle', "\u0301 needle",
    ],
)  # fmt: skip
def test_no_query_is_syntax(tmp_path: Path, query: str) -> None:
    """Whatever a query holds, it is words to look for."""
    (tmp_path / "a.txt").write_text("one needle and two words")
    (tmp_path / "b.txt").write_text("hay")
    assert found(tmp_path, query) == ["docs/a.txt:1-1"]


def test_a_query_of_many_words_and_one_of_none_are_answered(tmp_path: Path) -> None:
    """No limit of SQLite's is below the longest query."""
    (tmp_path / "a.txt").write_text("東京 needle")
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 990))) + " needle"
    assert found(tmp_path, many) == ["docs/a.txt:1-1"]
    assert found(tmp_path, "?! ...") == []


def test_a_python_without_fts5_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker is told why there is no search, and what to use instead."""

    class Without(sqlite3.Connection):
        def execute(self, sql: str, *given: object) -> sqlite3.Cursor:
            return super().execute(sql.replace("fts5", "absent"), *given)  # type: ignore[arg-type]

    connect = sqlite3.connect
    monkeypatch.setattr(passages.sqlite3, "connect", lambda *given, **more: connect(*given, **more, factory=Without))
    monkeypatch.setattr(documents, "_KEPT", documents._Kept())  # pyright: ignore[reportPrivateUsage]
    (tmp_path / "a.txt").write_text("needle")
    result = search(tmp_path, "needle")
    assert result.code == "unavailable"
    assert "search_files" in str(result.error)


def test_an_index_is_searched_from_several_threads() -> None:
    """Workers share an index, and each gets what it asked for."""
    index = passages.PassageIndex(passages.Passage(f"{n}", 1, 1, f"word{n} more") for n in range(200))
    with ThreadPoolExecutor(8) as threads:
        ranked = list(threads.map(lambda n: index.rank(f"word{n}", 3), range(200)))
    assert [[each.name for each in one] for one in ranked] == [[f"{n}"] for n in range(200)]
