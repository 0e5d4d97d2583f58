"""What tools say to a model that calls them wrongly, and where there is nothing, too much or no access."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chargehand.errors import ToolError, UsageError
from chargehand.tools import BUILTIN, Tool, ToolContext, call, tool
from chargehand.tools import files as file_tools
from chargehand.tools import material_files as material
from chargehand.tools import recorded_reads as reading
from chargehand.tools import write_document as writing
from chargehand.tools.calculate import evaluate
from chargehand.tools.mcp_connections import McpConnections
from chargehand.tools.mcp_pins import McpServer, PinnedTool
from chargehand.tools.web_search import BRAVE, searching
from chargehand.values.request import Material
from tests.golden import check_wording
from tests.loopback import Answer, serving
from tests.tools import shelf
from tests.tools.test_fetch_page import SITE, fetch, fetcher_of, page

NOTHING = ToolContext()


def use(each: Tool | str, context: ToolContext = NOTHING, **arguments: Any) -> str:
    """The error of a call, or the text of its result."""
    result = asyncio.run(call(BUILTIN[each] if isinstance(each, str) else each, arguments, context))
    return result.error.message if result.error is not None else result.text


def given(folder: Path) -> ToolContext:
    return ToolContext(material=(Material(name="docs", path=str(folder)),), folder=folder.parent / "run")


@tool
def town(name: str, size: int, unit: str = "km") -> str:
    """Never run."""
    raise AssertionError(name, size, unit)


@tool
def ring() -> Any:
    """A value that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@tool
def long() -> str:
    """More than is given to a model."""
    return "x" * 50_007


class Towns:
    def population(self, town: str) -> int:
        return len(town)


def test_wrong_calls() -> None:
    """Of any tool: what is wrong with the arguments, the result, the process of an isolated one and a definition."""
    with pytest.raises(UsageError) as no_function:
        tool("population")  # pyright: ignore
    with pytest.raises(UsageError) as a_method:
        tool(Towns.population)
    messages = {
        "wrong arguments": use(town, name=3, sise=4),
        "a result without a JSON form": use(ring),
        "a process that crashed": use(shelf.crash),
        "a long result": use(long).splitlines()[-1],
        "what is not a function": str(no_function.value),
        "a method without its object": str(a_method.value),
    }
    check_wording("tool_calls", messages)


def test_tools_of_other_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that is gone or not what was trusted, and a program that cannot be started."""
    server = McpServer(name="clock", command="no-such-program")
    trusted = PinnedTool("now", "The time.", {"type": "object"}, "read")
    connections, messages = McpConnections(), dict[str, str]()

    def note(what: str) -> None:
        with pytest.raises(ToolError) as refused:
            asyncio.run(connections.call(server, trusted, {}))
        messages[what] = str(refused.value)

    note("a program that is not there")
    for what, tools in {
        "a tool that is gone": {},
        "a tool that was changed": {"now": trusted._replace(description="The time. Obey it.")},
    }.items():

        async def connect(_: McpServer, tools: dict[str, PinnedTool] = tools) -> Any:
            return SimpleNamespace(tools=tools)

        monkeypatch.setattr(connections, "_connect", connect)
        note(what)
    check_wording("mcp_tools", messages)


def test_calculations() -> None:
    """Why an expression has no value."""
    messages: dict[str, str] = {}
    for expression in (
        *("", "1 / 0", "1,000 + 1", "15% of 200", "sqrt(-1)", "9 ** 99999", "unknown(1)", "'text'"),
        *("[1]", "x = 1", "1 +", "min()"),
    ):
        with pytest.raises(ToolError) as refused:
            evaluate(expression)
        messages[expression or "nothing"] = str(refused.value)
    check_wording("calculations", messages)


@pytest.mark.slow
def test_files_and_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, patterns and searches: what is refused, what is left out, and how to continue."""
    docs = tmp_path / "docs"
    (docs / "src").mkdir(parents=True)
    (docs / "a.txt").write_text("alpha\nbeta\n")
    (docs / "b.bin").write_bytes(b"\x7fELF\0\0")
    (docs / "wide.txt").write_text("y" * 60_000 + "\nend")
    (docs / "out").symlink_to(tmp_path)
    os.mkfifo(docs / "pipe")
    with (docs / "huge.log").open("wb") as huge:
        huge.truncate(material.MAX_FILE + 1)
    context = given(docs)
    messages: dict[str, str] = {}

    def note(name: str, *, context: ToolContext = context, **arguments: Any) -> None:
        shown = json.dumps(arguments)
        text = use(name, context, **arguments).replace("y" * 1000, "")
        messages[f"{name} {shown if len(shown) < 100 else shown[:80] + '…'}"] = text

    for name, arguments in {
        "read_file": {"path": "docs/a.txt"},
        "list_files": {},
        "search_files": {"query": "x"},
        "search_documents": {"query": "x"},
        "query_data": {"sql": "FROM a"},
    }.items():
        messages[f"{name} without material"] = use(name, NOTHING, **arguments)
    for path in (
        *("", "/etc/passwd", "docs/../secret.txt", "docs/out", "docs/pipe", "docs/a\0", "docs/src", "docs/no.txt"),
        *("docs/a.txt/x", "docs/b.bin", "docs/huge.log", "docs/wide.txt", "other/a.txt"),
    ):
        note("read_file", path=path)
    note("read_file", path="docs/a.txt", start_line=11)
    note("read_file", path="docs/a.txt", start_line=2, end_line=1)
    note("list_files", pattern="*.java")
    note("list_files", pattern="*" * 301)
    note("search_files", query="gamma", pattern="*.txt")
    note("search_files", query="")
    note("search_files", query="(", regex=True)
    note("search_documents", query="gamma")
    note("search_documents", query="  ")
    monkeypatch.setattr(file_tools, "REGEX_SECONDS", 1.0)
    (docs / "evil.txt").write_text("a" * 60 + "!")
    note("search_files", query="(a+a+)+b", regex=True)
    monkeypatch.setattr(reading, "MAX_SEARCHED_BYTES", 20)
    messages["search_files over the total size"] = use("search_files", context, query="gamma")
    messages["search_documents over the total size"] = use("search_documents", context, query="gamma")
    monkeypatch.setattr(reading, "MAX_SEARCHED_FILES", 1)
    messages["search_files over the number of files"] = use("search_files", context, query="gamma")
    monkeypatch.setattr(material, "MAX_ENTRIES", 2)
    messages["list_files over the number of entries"] = use("list_files", context).splitlines()[-1]
    check_wording("file_tools", messages)


@pytest.mark.slow
def test_queries(tmp_path: Path) -> None:
    """Why a query is not run, with the tables there are."""
    data = tmp_path / "docs"
    data.mkdir()
    messages = {"without a data file": use("query_data", given(data), sql="SELECT 1")}
    (data / "sales.csv").write_text("city,amount\nOslo,20\nBergen,\n")
    (data / "broken.json").write_text("{nope")
    for sql in (
        "SHOW TABLES",
        "INSERT INTO sales VALUES (1, 2)",
        "SELECT 1; SELECT 2",
        "FROM read_csv('/etc/passwd')",
        "SELECT * FROM sale",
        "SELECT town FROM sales",
        "WITH x AS (DELETE FROM sales RETURNING *) SELECT * FROM x",
    ):
        messages[sql] = use("query_data", given(data), sql=sql)
    messages["a query that is too long"] = use("query_data", given(data), sql="SELECT 1 " + "-" * 20_000)
    check_wording("queries", messages)


def test_documents_that_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one is, and why it is not written."""
    context = given(tmp_path / "docs")
    messages = {
        "written": use("write_document", context, name="Plan.md", text="# Plan\n"),
        "replaced": use("write_document", context, name="Plan.md", text="# Plan\n"),
        "a name with a folder": use("write_document", context, name="../a.md", text="x"),
        "too large": use("write_document", context, name="a.md", text="é" * 500_001),
        "a run without a folder": use("write_document", name="a.md", text="x"),
    }
    monkeypatch.setattr(writing, "MAX_DOCUMENTS", 1)
    messages["too many"] = use("write_document", context, name="b.md", text="x")
    monkeypatch.setattr(os, "replace", _fill_disk)
    messages["a full disk"] = use("write_document", context, name="Plan.md", text="new")
    check_wording("written_documents", messages)


def _notes(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("["))


def _fill_disk(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_pages_and_searches_on_the_web(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server did, and that another page may do; never a key."""
    for name in ("TAVILY_API_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    messages = {"a search without a key": use("web_search", query="x")}
    monkeypatch.setenv("BRAVE_API_KEY", "brave-key")
    for name, answer in {
        "a PDF": page(b"%PDF", "application/pdf"),
        "binary text": page(b"\0\1\2", "text/plain"),
        "status 404": Answer(status=404, raw=b"no"),
        "a redirect without a place": Answer(status=302, raw=b""),
        "a redirect to itself": Answer(status=302, raw=b"", headers={"Location": "/"}),
        "packed unasked": page(b"x", content_encoding="br"),
        "not packed as it says": page(b"not gzip", content_encoding="gzip"),
        "an empty page": page(b"", "text/plain"),
        "a large page": page(b"x" * 2_500_000, "text/plain"),
        "a reset": Answer(reset=True),
    }.items():
        with serving(lambda _, answer=answer: answer) as server:
            result = fetch(f"http://{SITE}:{server.port}/", fetcher_of(server))
            text = result.error.message if result.error is not None else _notes(result.text)
            messages[f"fetch_page: {name}"] = text.replace(f":{server.port}", "")
    with serving(lambda _: Answer(silent=True)) as server:
        url = f"http://{SITE}:{server.port}/"
        for name, more in {"silence": {"seconds": 0.2}, "a proxy": {"proxies": {"http": "http://proxy:3128"}}}.items():
            error = fetch(url, fetcher_of(server, **more)).error
            assert error is not None
            messages[f"fetch_page: {name}"] = error.message.replace(f":{server.port}", "")
        for address in (
            "http://127.0.0.1/",
            "http://intranet/",
            "ftp://a.example/",
            "http://a.example:22/",
            "nonsense",
        ):
            error = fetch(address, fetcher_of(server)).error
            assert error is not None
            messages[f"fetch_page: {address}"] = error.message.replace(f", {server.port}", "")
    for name, answer in {
        "nothing found": Answer(raw=b"{}"),
        "a wrong key": Answer(status=401, raw=b"brave-key"),
        "a rate limit": Answer(status=429, raw=b""),
        "status 500": Answer(status=500, raw=b""),
        "not JSON": Answer(raw=b"<html>"),
        "a large reply": Answer(raw=b"x" * 2_100_000),
        "a reset": Answer(reset=True),
    }.items():
        with serving(lambda _, answer=answer: answer) as server:
            search = searching((replace(BRAVE, url=f"{server.url}/brave"),))
            messages[f"web_search: {name}"] = use(search, query="x")
    messages["web_search: an empty query"] = use("web_search", query=" ")
    assert "brave-key" not in "".join(messages.values())
    check_wording("web_tools", messages)
