"""The file tools see the request's material and nothing else, whatever path they are given and whatever lies there."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chargehand.errors import ToolError, ToolErrorCode
from chargehand.tools import BUILTIN, ToolContext, call, files, still_valid
from chargehand.tools import glob as pattern
from chargehand.tools import material_files as material
from chargehand.tools import recorded_reads as reading
from chargehand.values.effect import ToolResult
from chargehand.values.request import Material
from tests.counts import examples

SECRET = "outside-and-secret"


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Iterator[Path]:
    """A folder of material `docs` beside a secret, with every kind of trap in it."""
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "docs-private").mkdir()
    (tmp_path / "docs-private" / "secret.txt").write_text(SECRET)
    root = tmp_path / "docs"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("alpha\nbeta\n")
    (root / "src" / "main.py").write_text("import os\nprint('Beta')\n")
    (root / "src" / "deep" / "x.md").write_text("# title\n")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("beta in git")
    (root / ".hidden").write_text("beta hidden")
    (root / "inner").symlink_to("src/main.py")
    (root / "inner_dir").symlink_to("src")
    (root / "out_file").symlink_to(tmp_path / "secret.txt")
    (root / "out_relative").symlink_to("../secret.txt")
    (root / "out_dir").symlink_to(tmp_path)
    (root / "out_sibling").symlink_to(tmp_path / "docs-private")
    (root / "out_chain").symlink_to("out_file")
    (root / "loop_a").symlink_to("loop_b")
    (root / "loop_b").symlink_to("loop_a")
    (root / "self").symlink_to("self")
    (root / "round").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    (root / "zero").symlink_to("/dev/zero")
    (root / "null").symlink_to("/dev/null")
    (root / "environ").symlink_to("/proc/self/environ")
    (root / "cwd").symlink_to("/proc/self/cwd")
    (root / "slash").symlink_to("/")
    os.mkfifo(root / "pipe")
    os.mkfifo(root / "src" / "pipe")
    # A socket's own path may be at most about 100 characters long, so it is bound from inside.
    before = Path.cwd()
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(root)
    listener.bind("sock")
    os.chdir(before)
    yield root
    listener.close()


def given_docs(root: Path) -> ToolContext:
    return ToolContext(material=(Material(name="docs", path=str(root)),))


def use(name: str, context: ToolContext, **arguments: Any) -> ToolResult:
    return asyncio.run(call(BUILTIN[name], arguments, context))


def text(name: str, context: ToolContext, **arguments: Any) -> str:
    result = use(name, context, **arguments)
    assert result.error is None, result.error
    return result.text


def refusal(name: str, context: ToolContext, **arguments: Any) -> ToolErrorCode | None:
    result = use(name, context, **arguments)
    assert result.error is not None, result.text
    return result.code


LINKS = ["out_file", "out_relative", "out_chain", "loop_a", "loop_b", "self", "dangling", "zero", "null", "environ"]
FOLDERS_OUT = ["out_dir", "out_sibling", "cwd", "slash"]
SPECIAL = ["pipe", "src/pipe", "sock", "inner_dir/pipe", "round/pipe"]
HOSTILE = [
    *(f"docs/{name}" for name in LINKS + SPECIAL),
    *(f"docs/round/{name}" for name in LINKS),
    *(f"docs/{name}/secret.txt" for name in FOLDERS_OUT),
    *(f"docs/{name}/etc/passwd" for name in FOLDERS_OUT),
    *(f"docs/round/round/{name}/secret.txt" for name in FOLDERS_OUT),
    *(f"docs/{up}secret.txt" for up in ("../", "./../", "src/../../", "src/deep/../../../", "..//", "../docs/../")),
    *(f"docs/src/{'../' * depth}etc/passwd" for depth in range(1, 12)),
    *(f"{'../' * depth}etc/passwd" for depth in range(1, 6)),
    "docs/..", "docs/../docs/a.txt", "docs/src/..", "..", ".", "", "/", "//", "./", "../", "docs/a.txt/..",
    "docs/../../", "/etc/passwd", "//etc/passwd", "///etc/passwd", "/docs/a.txt", "/dev/zero", "/dev/stdin",
    "/proc/self/environ", "/proc/self/fd/0", "~", "~/.ssh/id_rsa", "~root/.bashrc", "$HOME/x", "file:///etc/passwd",
    "C:\\Windows\\win.ini", "\\\\host\\share", "docs\\..\\secret.txt", "docs\\a.txt", "..\\secret.txt",
    "docs/%2e%2e/secret.txt", "docs/..%2fsecret.txt", "docs/..\\secret.txt", "docs/%00", "docs/\0", "\0",
    "docs/a.txt\0.png", "docs/a.txt\0", "\0/etc/passwd", "docs/..\0/secret.txt", "docs-private/secret.txt",
    "docs-private", "docsx", "doc", "DOCS/a.txt", " docs/a.txt", "docs /a.txt", "docs/ a.txt", "docs/a.txt ",
    "docs/a.txt\n", "\ndocs/a.txt", "docs/a.txt/", "docs/a.txt/x", "docs/a.txt/../a.txt", "docs/missing",
    "docs/src", "docs", "docs/", "docs/．．/secret.txt", "docs/‥/secret.txt", "docs/∕etc∕passwd", "docs/\u202e/txt.a",
    "docs/a\u200b.txt", "docs/\u2025/secret.txt", "docs/*", "docs/a.*", "docs/[a].txt", "docs/-rf", "--help", "-",
    "docs/;ls", "docs/|cat", "docs/$(id)", "docs/`id`", "secret.txt", "docs/" + "x" * 300, "docs/" + "x/" * 2100,
    "x" * 5000, "docs/" + "src/../" * 100 + "a.txt", "docs/...", "docs/..../secret.txt", "docs/out_dir/docs/a.txt",
    "docs/slash/etc/hostname", "docs/cwd/pyproject.toml", "docs/out_dir", "docs/out_sibling",
]  # fmt: skip
# Odd spellings that end at a file of the material after all.
HARMLESS = {"docs/a.txt/", "docs/out_dir/docs/a.txt"}


def test_there_are_enough_hostile_paths() -> None:
    """At least 100 different paths are tried."""
    assert len(set(HOSTILE) - HARMLESS) >= 100


def refused(context: ToolContext, path: str) -> str:
    try:
        answer = files.read_file(context, path)
    except ToolError as error:
        return str(error)
    pytest.fail(f"{path!r} was read: {answer[:100]!r}")


def test_no_hostile_path_is_read(root: Path) -> None:
    """Each is refused with the remedy, at once, and neither secret nor real path is told."""
    context = given_docs(root)
    for path in sorted(set(HOSTILE) - HARMLESS):
        message = refused(context, path)
        assert SECRET not in message
        assert str(root.parent) not in message
        assert "docs/a.txt" in message or "docs/src/main.py" in message, (path, message)
        assert "\n" not in message
    assert context.reads.hashes == {}


def test_no_hostile_path_is_listed_from_outside(root: Path) -> None:
    """As the folder to list, they give a refusal or files of the material, never others."""
    context = given_docs(root)
    for path in sorted(set(HOSTILE)):
        try:
            listed = files.list_files(context, path=path)
        except ToolError as error:
            listed = str(error).replace(path, "")
        assert str(root.parent) not in listed
        assert "docs-private" not in listed, path
        assert "docs/secret.txt" not in listed, path
        assert SECRET not in listed, path


def test_hostile_paths_are_refused_through_the_call_too(root: Path) -> None:
    """The whole way of a model's call ends in the same refusal."""
    assert refusal("read_file", given_docs(root), path="docs/../secret.txt") == "not_allowed"
    assert refusal("read_file", given_docs(root), path="docs/out_file") == "not_allowed"
    assert refusal("read_file", given_docs(root), path="docs/pipe") == "not_readable"
    assert refusal("read_file", given_docs(root), path="docs/a\0") == "wrong_arguments"
    assert refusal("read_file", given_docs(root), path="docs/none") == "not_found"


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(
            ["docs", "..", ".", "", "src", "a.txt", "secret.txt", "out_dir", "round", "slash", "etc", "passwd", "~"]
        ),
        max_size=7,
    ),
    lead=st.sampled_from(["", "/", "./", "docs/"]),
)
def test_no_combination_of_parts_leads_outside(root: Path, parts: list[str], lead: str) -> None:
    """Whatever is put together gives a file of the material or a refusal."""
    try:
        answer = files.read_file(given_docs(root), lead + "/".join(parts))
    except ToolError:
        return
    assert "alpha" in answer


def test_a_link_within_the_material_is_followed(root: Path) -> None:
    """Only where a link leads matters."""
    assert "import os" in text("read_file", given_docs(root), path="docs/inner")
    assert "import os" in text("read_file", given_docs(root), path="docs/inner_dir/main.py")
    assert "import os" in text("read_file", given_docs(root), path="docs/round/./src//main.py")


def test_a_folder_swapped_for_a_link_after_the_check_is_not_followed(root: Path) -> None:
    """What was resolved is opened without following links, so a swap in between is an error, not an escape."""
    place = material.locate("docs/src/main.py", given_docs(root))
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to(root.parent / "docs-private")
    (root.parent / "docs-private" / "main.py").write_text(SECRET)
    with pytest.raises(ToolError):
        material.read(place)


def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(root: Path) -> None:
    """The last part is not followed either."""
    place = material.locate("docs/a.txt", given_docs(root))
    (root / "a.txt").unlink()
    (root / "a.txt").symlink_to(root.parent / "secret.txt")
    with pytest.raises(ToolError):
        material.read(place)


def test_material_can_be_one_file(tmp_path: Path) -> None:
    """Its name alone is its path."""
    (tmp_path / "notes.md").write_text("hello")
    context = ToolContext(material=(Material(name="notes.md", path=str(tmp_path / "notes.md")),))
    assert text("read_file", context, path="notes.md") == "notes.md (lines 1-1 of 1)\nhello"
    assert text("list_files", context) == "notes.md"
    assert text("search_files", context, query="hell") == "notes.md:1: hello"
    assert refusal("read_file", context, path="notes.md/x") == "not_readable"


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_material_that_is_a_device_is_not_opened(device: str) -> None:
    """Even when it was given by name."""
    context = ToolContext(material=(Material(name="dev", path=device),))
    assert refusal("read_file", context, path="dev") == "not_readable"
    assert text("list_files", context).startswith("No file")


def test_without_material_every_file_tool_says_so() -> None:
    """There is nothing to read, and that is what the worker learns."""
    for name, arguments in (("read_file", {"path": "x"}), ("list_files", {}), ("search_files", {"query": "x"})):
        assert refusal(name, ToolContext(), **arguments) == "unavailable"


def test_lines_are_counted_and_chosen(root: Path) -> None:
    """The header says which lines follow."""
    (root / "n.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    context = given_docs(root)
    assert text("read_file", context, path="docs/n.txt", start_line=3, end_line=4) == (
        "docs/n.txt (lines 3-4 of 10)\nline 3\nline 4"
    )
    assert text("read_file", context, path="docs/n.txt", start_line=9, end_line=99).endswith("line 9\nline 10")
    assert refusal("read_file", context, path="docs/n.txt", start_line=11) == "wrong_arguments"
    assert refusal("read_file", context, path="docs/n.txt", start_line=3, end_line=2) == "wrong_arguments"
    assert refusal("read_file", context, path="docs/n.txt", start_line=0) == "wrong_arguments"


def test_a_long_file_is_cut_between_lines_and_says_how_to_go_on(root: Path) -> None:
    """Following the hints to the end gives the whole file."""
    lines = [f"{n} " + "x" * 90 for n in range(2000)]
    (root / "long.txt").write_text("\n".join(lines))
    context, start, seen = given_docs(root), 1, list[str]()
    while start:
        answer = text("read_file", context, path="docs/long.txt", start_line=start)
        assert len(answer) < 50_000
        shown = answer.split("\n")[1:]
        more = shown[-1].startswith("[")
        start = int(shown.pop().split("start_line=")[1][:-1]) if more else 0
        seen += shown
    assert seen == lines


def test_a_line_longer_than_an_answer_is_cut(root: Path) -> None:
    """Even one line cannot flood the worker."""
    (root / "wide.txt").write_text("y" * 60_000 + "\nend")
    answer = text("read_file", given_docs(root), path="docs/wide.txt")
    assert "15000" in answer
    assert "start_line=2" in answer


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "docs/f (empty)\n"),
        (b"\xef\xbb\xbfbom", "docs/f (lines 1-1 of 1)\nbom"),
        ("Käse ø".encode("latin-1"), "docs/f (lines 1-1 of 1; Windows-1252)\nKäse ø"),
        (b"\x81", "docs/f (lines 1-1 of 1; Latin-1)\n\x81"),
        ("wide".encode("utf-16"), "docs/f (lines 1-1 of 1; UTF-16)\nwide"),
        ("wide".encode("utf-32"), "docs/f (lines 1-1 of 1; UTF-32)\nwide"),
        (b"\0\0\xfe\xff\0\0\0w", "docs/f (lines 1-1 of 1; UTF-32)\nw"),
        (b"\n\n", "docs/f (lines 1-2 of 2)\n\n"),
    ],
)
def test_text_is_decoded_with_a_note(root: Path, data: bytes, expected: str) -> None:
    """UTF-8 is plain; anything else says so."""
    (root / "f").write_bytes(data)
    assert text("read_file", given_docs(root), path="docs/f") == expected


def test_binary_and_huge_files_are_not_read(root: Path) -> None:
    """The worker learns why."""
    (root / "b.bin").write_bytes(b"\x7fELF\0\0")
    with (root / "huge.log").open("wb") as huge:
        huge.truncate(material.MAX_FILE + 1)
    assert refusal("read_file", given_docs(root), path="docs/b.bin") == "not_readable"
    assert refusal("read_file", given_docs(root), path="docs/huge.log") == "too_large"


def test_a_listing_is_sorted_and_holds_regular_files_only(root: Path) -> None:
    """.git, pipes, sockets, and links that lead out, nowhere or to folders are left out; hidden files are not."""
    assert text("list_files", given_docs(root)).split("\n") == [
        "docs/.hidden",
        "docs/a.txt",
        "docs/inner",
        "docs/src/deep/x.md",
        "docs/src/main.py",
    ]


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", None, ["docs/src/main.py"]),
        ("src/*.py", None, ["docs/src/main.py"]),
        ("docs/src/**/*.md", None, ["docs/src/deep/x.md"]),
        ("**/*.md", "docs/src", ["docs/src/deep/x.md"]),
        ("deep/*", "docs/src", ["docs/src/deep/x.md"]),
        ("[ab].t?t", None, ["docs/a.txt"]),
        ("*", "docs/src/deep", ["docs/src/deep/x.md"]),
        ("*", "docs/a.txt", ["docs/a.txt"]),
        ("*.py", "docs/inner_dir", ["docs/inner_dir/main.py"]),
    ],
)
def test_patterns_choose_files(root: Path, glob: str, path: str | None, expected: list[str]) -> None:
    """Within a part, across parts, by the whole name, and below a folder."""
    assert text("list_files", given_docs(root), pattern=glob, path=path).split("\n") == expected


def test_a_pattern_that_fits_nothing_says_what_there_is(root: Path) -> None:
    """An empty answer would leave the worker guessing."""
    said = text("list_files", given_docs(root), pattern="*.java")
    assert "*.java" in said
    assert "docs" in said


def test_odd_names_are_listed_on_one_line_and_can_be_read(tmp_path: Path) -> None:
    """Spaces, newlines, dashes and unicode are names like others; names that are not UTF-8 are left out."""
    names = [
        "-rf",
        " lead",
        "a b",
        "new\nline",
        "tab\t",
        "ünï",
        "🙂.txt",
        "$(id)",
        "quote'\"",
        "back\\slash",
        "..hidden",
    ]
    for name in names:
        (tmp_path / name).write_text(f"in {name!r}")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")).write_text("x")
    context = given_docs(tmp_path)
    assert len(text("list_files", context).split("\n")) == len(names)
    assert '"docs/new\\nline"' in text("list_files", context)
    for name in names:
        assert f"in {name!r}" in text("read_file", context, path=f"docs/{name}")


def test_a_long_listing_is_capped_with_a_note(tmp_path: Path) -> None:
    """500 are shown, in order."""
    for n in range(510):
        (tmp_path / f"{n:04}").touch()
    lines = text("list_files", given_docs(tmp_path)).split("\n")
    assert lines[:2] == ["docs/0000", "docs/0001"]
    assert len(lines) == 501
    assert "500" in lines[-1]


def test_a_walk_stops_after_so_many_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without end does not take forever, and the answer says it is not whole."""
    monkeypatch.setattr(material, "MAX_ENTRIES", 20)
    for n in range(30):
        (tmp_path / f"{n:04}").touch()
    *listed, note = text("list_files", given_docs(tmp_path)).split("\n")
    assert len(listed) <= 20
    assert note.startswith("[")


def test_a_very_deep_folder_is_walked(tmp_path: Path) -> None:
    """Depth is no recursion."""
    deep = tmp_path
    for _ in range(400):
        deep = deep / "d"
        deep.mkdir()
    (deep / "end.txt").touch()
    assert text("list_files", given_docs(tmp_path)).endswith("/end.txt")


def test_a_search_finds_lines(root: Path) -> None:
    """Literally by default, with or without case, in files that fit; .git is not searched."""
    context = given_docs(root)
    assert text("search_files", context, query="beta") == "docs/.hidden:1: beta hidden\ndocs/a.txt:2: beta"
    assert "docs/src/main.py:2: print('Beta')" in text("search_files", context, query="BETA", ignore_case=True)
    assert text("search_files", context, query="beta", pattern="*.txt") == "docs/a.txt:2: beta"
    assert text("search_files", context, query="b.ta").startswith("No match in 5 ")
    assert text("search_files", context, query="^b.ta$", regex=True) == "docs/a.txt:2: beta"
    assert text("search_files", context, query="^B.TA$", regex=True, ignore_case=True) == "docs/a.txt:2: beta"
    assert refusal("search_files", context, query="(", regex=True) == "wrong_arguments"
    assert refusal("search_files", context, query="") == "wrong_arguments"


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "utf-32"])
def test_every_tool_reads_the_same_text(tmp_path: Path, encoding: str) -> None:
    """In whatever encoding a file is, what one tool shows the others find."""
    (tmp_path / "f.txt").write_bytes("Käse Größe".encode(encoding))
    context = given_docs(tmp_path)
    assert text("read_file", context, path="docs/f.txt").endswith("\nKäse Größe")
    assert text("search_files", context, query="Käse") == "docs/f.txt:1: Käse Größe"
    assert text("search_documents", context, query="Größe") == "docs/f.txt:1-1\nKäse Größe"


def test_a_search_never_sees_outside(root: Path) -> None:
    """What lies behind links and in special files is not found."""
    assert text("search_files", given_docs(root), query=SECRET).startswith("No match")
    assert text("search_files", given_docs(root), query=".*secret.*", regex=True).startswith("No match")


def test_matches_are_capped_and_long_lines_cut(root: Path) -> None:
    """200 matches and 160 characters of each are enough to go on."""
    (root / "many.txt").write_text(("z" * 1000 + "needle" + "z" * 1000 + "\n") * 300)
    lines = text("search_files", given_docs(root), query="needle").split("\n")
    assert len(lines) == 201
    assert "200" in lines[-1]
    assert all("needle" in line and len(line) < 200 for line in lines[:-1])


def test_an_expression_without_end_is_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in a process that is killed, and the loop goes on meanwhile."""
    monkeypatch.setattr(files, "REGEX_SECONDS", 0.5)
    (root / "evil.txt").write_text("a" * 60 + "!")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    async def main() -> ToolResult:
        ticking = asyncio.create_task(tick())
        try:
            return await call(BUILTIN["search_files"], {"query": "(a+a+)+b", "regex": True}, given_docs(root))
        finally:
            ticking.cancel()

    result = asyncio.run(main())
    assert result.code == "too_slow"
    assert ticks > 3


@settings(deadline=None)
@given(st.text("ab*?[]!/-", max_size=40), st.text("ab/", max_size=60))
def test_any_pattern_is_a_pattern(glob: str, name: str) -> None:
    """No glob is an error, and none takes long."""
    assert pattern.compile_glob(glob)(name, name) in (True, False)


def test_a_pattern_made_to_be_slow_is_not() -> None:
    """Many stars cost no more than the product of both lengths."""
    assert not pattern.compile_glob("*a" * 140)("a" * 4000 + "b", "x")
    assert not pattern.compile_glob("**/a/" * 50 + "z")("a/" * 1000 + "b", "x")
    with pytest.raises(ToolError) as refused:
        pattern.compile_glob("*" * 301)
    assert refused.value.code == "wrong_arguments"


def test_every_file_tool_records_what_it_read(root: Path) -> None:
    """A result is valid until something it depends on changes, and only then."""
    context = given_docs(root)
    read = use("read_file", context, path="docs/./a.txt")
    listed = use("list_files", context, pattern="*.py")
    below = use("list_files", context, path="docs/src")
    searched = use("search_files", context, query="beta", pattern="*.txt")
    results = [read, listed, below, searched]
    assert list(read.reads) == ["docs/a.txt"]
    assert all(result.reads and still_valid(result.reads, context) for result in results)
    (root / "other.md").write_text("beta")
    assert all(still_valid(result.reads, context) for result in results)
    (root / "src" / "new.py").touch()
    assert [still_valid(result.reads, context) for result in results] == [True, False, False, True]
    (root / "a.txt").write_text("gamma")
    assert [still_valid(result.reads, context) for result in results] == [False, False, False, False]
    assert not still_valid(read.reads, ToolContext())


def test_files_over_the_total_are_left_out_with_a_note(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search says when it did not see everything."""
    monkeypatch.setattr(reading, "MAX_SEARCHED_BYTES", 20)
    assert text("search_files", given_docs(root), query="nothing").endswith("]")
    monkeypatch.setattr(reading, "MAX_SEARCHED_FILES", 1)
    assert text("search_files", given_docs(root), query="nothing").endswith("]")


# -- material in the prompt --------------------------------------------------------------------------------------------


def shown(root: Path, *names: str, most: int = 10_000) -> ToolResult:
    context = ToolContext(material=(Material(name="docs", path=str(root)),))
    tool = BUILTIN.called_by_code({"read_file": BUILTIN["read_file"]})["read_material"]
    return asyncio.run(call(tool, {"names": list(names), "most": most}, context))


def test_small_material_is_shown_with_its_lines_numbered(tmp_path: Path) -> None:
    """Each file under its name; what was shown may be cited."""
    (tmp_path / "a.md").write_text("one\ntwo\n")
    (tmp_path / "b.md").write_text("three")
    result = shown(tmp_path)
    assert result.text == "docs/a.md (lines 1-2 of 2)\n1: one\n2: two\n\ndocs/b.md (lines 1-1 of 1)\n1: three"
    assert result.lines == {"docs/a.md": 2, "docs/b.md": 1}
    assert shown(tmp_path, "docs/b.md").lines == {"docs/b.md": 1}
    assert shown(tmp_path, "docs/no.md").lines == result.lines


def test_material_that_is_too_long_is_only_listed(tmp_path: Path) -> None:
    """Its names are there, and none of it can be cited; a file that is not text is not shown."""
    (tmp_path / "a.md").write_text("x" * 20_000)
    result = shown(tmp_path)
    assert result.text.splitlines()[1:] == ["docs/a.md"]
    assert result.lines == {}
    (tmp_path / "a.md").write_bytes(b"\0\1\2")
    assert shown(tmp_path).lines == {}


def test_material_in_the_prompt_stays_inside_of_it(root: Path) -> None:
    """Links that lead outside are not followed."""
    assert SECRET not in shown(root).text
