"""The shipped file tools: read, list and search the request's material, and nothing else."""

from __future__ import annotations

import json
import re
import sys
from typing import Annotated

from chargehand.errors import ToolError
from chargehand.tools import material_files as material
from chargehand.tools import recorded_reads as reading
from chargehand.tools.definition import tool
from chargehand.tools.encoding import decode_text, is_text
from chargehand.tools.tool_context import ToolContext
from chargehand.values.field_schema import Field

# Below the cap of a result's text, so that a long file is cut between lines and the note says where to continue.
MAX_SHOWN = 45_000
MAX_MATCHES = 200
# How many files may be shown whole at once.
MAX_SHOWN_FILES = 20
REGEX_SECONDS = 10.0
Line = Annotated[int, Field(ge=1)]


@tool(effect="read")
def read_file(context: ToolContext, path: str, start_line: Line = 1, end_line: Line | None = None) -> str:
    """Read a text file, or some of its lines. The first line of the answer says which lines follow.

    Args:
        path: the file, as NAME/folder/file; list_files shows them
        start_line: first line to read
        end_line: last line to read; the end of the file without it
    """
    place = material.locate(path, context)
    data = material.read(place)
    context.record_read(place.name, data)
    if not is_text(data):
        raise ToolError(
            f"{material.one_line_name(place.name)} is a binary file of {len(data)} bytes; only text can be read.",
            "not_readable",
        )
    text, encoding = decode_text(data)
    lines = text.removesuffix("\n").split("\n") if text else []
    context.record_lines(place.name, len(lines))
    if end_line is not None and end_line < start_line:
        raise ToolError(f"end_line {end_line} is before start_line {start_line}.", "wrong_arguments")
    if start_line > max(1, len(lines)):
        raise ToolError(
            f"{material.one_line_name(place.name)} has {len(lines)} lines; start_line {start_line} is after its end.",
            "wrong_arguments",
        )
    return _page(
        material.one_line_name(place.name), lines, start_line, min(end_line or len(lines), len(lines)), encoding
    )


@tool(effect="read")
def read_material(context: ToolContext, names: list[str], most: int) -> str:
    """Every file of the material with its lines numbered, where all of it is small; else the names of the files.

    Args:
        names: only these files and folders; all without any
        most: how many characters may be shown
    """
    known = [name for name in names if _exists(name, context)]
    listed = [reading.listing("**/*", name, context) for name in known or [None]]
    found = list(dict.fromkeys(name for each in listed for name in each.names))
    shown: list[str] = []
    room = most
    for name in found[:MAX_SHOWN_FILES]:
        place = material.locate(name, context)
        data = material.read(place)
        room -= len(data)
        if room < 0 or not is_text(data):
            room = min(room, -1)
            break
        context.record_read(place.name, data)
        lines = decode_text(data)[0].removesuffix("\n").split("\n")
        context.record_lines(place.name, len(lines))
        head = f"{material.one_line_name(place.name)} (lines 1-{len(lines)} of {len(lines)})"
        shown.append("\n".join([head, *(f"{number}: {line}" for number, line in enumerate(lines, 1))]))
    if room >= 0 and len(found) <= MAX_SHOWN_FILES:
        return "\n\n".join(shown)
    # Nothing of the files is shown: nothing of them may be cited yet.
    context.reads.lines.clear()
    names_shown = [material.one_line_name(name) for name in found[: reading.MAX_LISTED]]
    counted = "1 file" if len(found) == 1 else f"{len(found):,} files"
    return "\n".join([f"{counted}, too long to show here. Read what you need:", *names_shown])


@tool(effect="read")
def list_files(context: ToolContext, pattern: str = "**/*", path: str | None = None) -> str:
    """List the files of the material, one path a line.

    Args:
        pattern: which ones, like *.py (in any folder) or src/**/test_*.py
        path: only in this folder, as NAME/folder
    """
    found = reading.listing(pattern, path, context)
    names = [material.one_line_name(name) for name in found.names[: reading.MAX_LISTED]]
    if len(found.names) > reading.MAX_LISTED:
        names.append(f"[only the first {reading.MAX_LISTED} are listed; narrow it with pattern or path]")
    elif not found.complete:
        names.append("[there are too many files to look at; narrow it with path]")
    return "\n".join(names) or f"No file fits the pattern {pattern}. Material: {_known_names(context)}."


@tool(effect="read")
async def search_files(
    context: ToolContext, query: str, pattern: str | None = None, regex: bool = False, ignore_case: bool = False
) -> str:
    """Find lines in the material's files; each is shown as path:line: text.

    Args:
        query: the text to find in a line
        pattern: only in files that fit, like *.py (in any folder) or NAME/src/**/*.md
        regex: take query as a regular expression (Python syntax, matched line by line)
        ignore_case: do not distinguish upper and lower case
    """
    if not query or len(query) > 1000:
        raise ToolError("query must be 1 to 1000 characters.", "wrong_arguments")
    # Imported here, so that checking a team with this tool does not load them.
    import asyncio

    from chargehand.tools import line_matching

    found = await asyncio.to_thread(reading.contents, pattern or "**/*", context)
    texts = [(material.one_line_name(name), decode_text(data)[0]) for name, data in found.files]
    if regex:
        hits = await _by_expression(query, ignore_case, texts)
    else:
        hits = await asyncio.to_thread(
            line_matching.matches, re.escape(query), ignore_case=ignore_case, texts=texts, limit=MAX_MATCHES + 1
        )
    lines = [f"{name}:{number}: {text}" for name, number, text in hits[:MAX_MATCHES]]
    found_in = {hit[0] for hit in hits[:MAX_MATCHES]}
    for name, text in texts:
        if name in found_in:
            context.record_lines(name, text.removesuffix("\n").count("\n") + 1)
    if len(hits) > MAX_MATCHES:
        lines.append(f"[only the first {MAX_MATCHES} matches are shown; narrow query or pattern]")
    lines += reading.limit_notes(found.notes)
    return "\n".join(lines if hits else [f"No match in {len(texts)} text files.", *lines])


def _exists(name: str, context: ToolContext) -> bool:
    try:
        material.locate(name, context)
    except ToolError:
        return False
    return True


async def _by_expression(query: str, ignore_case: bool, texts: list[tuple[str, str]]) -> list[list[str]]:
    """In a child process: an expression may never end, and it blocks the interpreter."""
    try:
        re.compile(query)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(
            f"query is not a regular expression: {error}. Leave regex out to find it literally.", "wrong_arguments"
        ) from None
    from chargehand.process import OutOfTime, run_process
    from chargehand.tools import line_matching

    order = {"expression": query, "ignore_case": ignore_case, "texts": texts, "limit": MAX_MATCHES + 1}
    command = [sys.executable, "-I", "-S", "-B", line_matching.__file__]
    try:
        ended = await run_process(command, stdin=json.dumps(order).encode(), seconds=REGEX_SECONDS)
    except OutOfTime:
        raise ToolError(
            f"The search took more than {REGEX_SECONDS:.0f} s and was stopped; use a simpler expression or plain text.",
            "too_slow",
        ) from None
    if ended.code != 0:
        raise ToolError("The search failed; use a simpler expression or plain text.")
    return json.loads(ended.stdout)


def _page(name: str, lines: list[str], first: int, last: int, encoding: str) -> str:
    chosen: list[str] = []
    room = MAX_SHOWN
    for line in lines[first - 1 : last]:
        room -= len(line) + 1
        if room < 0 and chosen:
            break
        chosen.append(line)
    more = ""
    if chosen and len(chosen[0]) > MAX_SHOWN:
        more = f"\n[line {first} is cut: {len(chosen[0]) - MAX_SHOWN} characters left out]"
        chosen = [chosen[0][:MAX_SHOWN]]
    shown = first + len(chosen) - 1
    if shown < last:
        more += f"\n[{last - shown} lines left out; continue with start_line={shown + 1}]"
    note = f"; {encoding}" if encoding else ""
    extent = f"lines {first}-{shown} of {len(lines)}" if chosen else "empty"
    return f"{name} ({extent}{note})\n" + "\n".join(chosen) + more


def _known_names(context: ToolContext) -> str:
    return ", ".join(material.one_line_name(each.name) for each in context.material)
