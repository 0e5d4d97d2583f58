"""Text of a command -> stdout for the answer, stderr for the rest, without secrets and terminal control characters."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from chargehand.errors import UsageError
from chargehand.text.escaping import dump_json, show_controls
from chargehand.text.redaction import Redactor
from chargehand.values.lazy_regex import lazy_regex

if TYPE_CHECKING:
    from rich.console import Console

WIDEST = 100
NARROWEST = 20
# A command to copy: the rest of a line, from its beginning or behind a colon.
_COMMAND = lazy_regex(r"(?:^ *|: )((?:chargehand [a-z]|pip install ).*)")
# A command in a sentence: in backticks, or from a colon to the end.
_WHOLE = lazy_regex(r"`[^`]+`|(?<=: )(?:chargehand [a-z]|pip install ).*")
# The space between a number and its unit.
_BEFORE_UNIT = lazy_regex(r"(?<=\d) (?=(?:ms|s|min|h|kB|MB|GB)\b|%)")
# Stands for a space while lines are broken. No text has it: control characters are made visible before.
_JOINED = "\0"


# A block of commands in Markdown; the group is its text.
_SHELL_BLOCK = lazy_regex(r"(?ms)^```sh\n(.*?)\n```$\n?")


class Screen(NamedTuple):
    """stdout and stderr of a command. `verbose` and `quiet` are its flags -v and -q."""

    redactor: Redactor
    verbose: bool = False
    quiet: bool = False

    @staticmethod
    def of_process(*, verbose: bool, quiet: bool) -> Screen:
        return Screen(Redactor.from_env(os.environ), verbose=verbose, quiet=quiet and not verbose)

    # -- stderr ------------------------------------------------------------------------------------------------------

    def say(self, text: str, below: int | None = None) -> None:
        """Lines on stderr, where they continue at the column `below`; not with -q."""
        if not self.quiet:
            print(fit(self.clean(text), sys.stderr, below), file=sys.stderr, flush=True)

    def say_file(self, before: str, path: Path, after: str = "") -> None:
        """A line on stderr with a link to a file; not with -q."""
        if not self.quiet:
            line = f"{self.clean(before)}{self.link(path, sys.stderr)}{self.clean(after)}"
            print(line, file=sys.stderr, flush=True)

    def complain(self, text: str) -> None:
        """Lines on stderr, also with -q."""
        print(fit(f"chargehand: {self.clean(text)}", sys.stderr), file=sys.stderr, flush=True)

    # -- stdout ------------------------------------------------------------------------------------------------------

    def put(self, text: str) -> None:
        """Lines of a listing or a document."""
        write(self.redactor.text(text if text.endswith("\n") else text + "\n"))

    def document(self, data: Any) -> None:
        """One JSON document."""
        write(self.as_document(self.redactor.json(data)))

    def as_document(self, redacted: Any) -> str:
        return dump_json(redacted, indent=2, ascii_only=not _utf8(sys.stdout)) + "\n"

    def markdown(self, text: str) -> None:
        """Markdown: rendered on a terminal, unchanged elsewhere."""
        _render(self.redactor.text(text))

    def answer(self, text: str) -> None:
        """As `markdown`, for the answer: only what is certainly a secret is removed."""
        _render(self.redactor.redact_delivered(text))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Collection[str] = ()) -> None:
        """Columns that line up, those named in `numbers` on the right; the last one is cut to fit a terminal."""
        cells = [[" ".join(self.clean(cell).split()) for cell in row] for row in (head, *rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
        room = max(terminal_columns() - sum(widths[:-1]) - 2 * (len(head) - 1), 8)
        for row in cells:
            last = row[-1] if not sys.stdout.isatty() or len(row[-1]) <= room else row[-1][: room - 1] + "…"
            padded = [
                cell.rjust(width) if name in numbers else cell.ljust(width)
                for name, cell, width in zip(head, row[:-1], widths, strict=False)
            ]
            write("  ".join([*padded, last]).rstrip() + "\n")

    def link(self, path: Path, stream: TextIO, painted: str = "") -> str:
        """The path, or `painted` in its place; on a terminal as a link (OSC 8)."""
        shown = painted or self.clean(str(path))
        if not stream.isatty() or os.environ.get("NO_COLOR"):
            return shown
        return f"\033]8;;{path.absolute().as_uri()}\033\\{shown}\033]8;;\033\\"

    def clean(self, text: str) -> str:
        """The text without secrets and with control characters made visible."""
        return show_controls(self.redactor.text(text))


def fit(text: str, stream: TextIO, below: int | None = None) -> str:
    """Text for a stream; on a terminal its lines are broken between words, and a command stays whole on a line.

    Continuation lines are indented by `below`; without it, an indented line is continued two columns further in.
    """
    width = max(terminal_columns(), NARROWEST)
    if not stream.isatty() or all(len(line) <= width for line in text.split("\n")):
        return text
    import textwrap

    lines: list[str] = []
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        under = " " * ((indent + 2 if indent else 0) if below is None else below)
        command = _COMMAND.search(line) if len(line) > width else None
        words = _BEFORE_UNIT.sub(_JOINED, line[: command.start(1)] if command else line)
        broken = textwrap.wrap(words, width, subsequent_indent=under, break_long_words=False, break_on_hyphens=False)
        broken = [each.replace(_JOINED, " ") for each in broken]
        if command:
            before = (under or "  ") if broken else " " * indent
            # Less indented if it fits then.
            room = width - len(command[1])
            broken.append((before[:room] if room >= 0 else before) + command[1])
        lines += broken or [""]
    return "\n".join(lines)


def wrap(text: str, width: int) -> list[str]:
    """Lines of the text, broken between words. A command to copy stays on one line, even if the line is too long.

    A separator between two figures ends a line and never begins one. A number and its unit are on one line.
    """
    import textwrap

    joined = _WHOLE.sub(lambda found: found[0].replace(" ", _JOINED), " ".join(text.split()))
    joined = _BEFORE_UNIT.sub(_JOINED, joined.replace(" · ", f"{_JOINED}· "))
    # In a narrow terminal, lines that are too long are better than one word per line.
    room = max(width, NARROWEST)
    lines = textwrap.wrap(joined, room, break_on_hyphens=False, break_long_words=False)
    return [line.replace(_JOINED, " ") for line in lines] or [""]


def _render(redacted: str) -> None:
    if not sys.stdout.isatty():
        write(redacted.rstrip("\n") + "\n")
        return
    from rich.markdown import Markdown

    terminal = console(stderr=False)
    for at, part in enumerate(_SHELL_BLOCK.split(show_controls(redacted))):
        if at % 2:
            # Commands will be copied: rich would break them.
            write_painted(f"\n{part}\n")
        elif part.strip():
            # The address of a link is printed next to its words, because a terminal would hide it.
            shown = Markdown(part, hyperlinks=False, code_theme="ansi_light")
            terminal.print(shown, width=min(terminal.width, WIDEST))


def write(text: str) -> None:
    """Text without secrets to stdout; characters that its encoding does not have become question marks."""
    write_painted(show_controls(text))


def write_painted(text: str) -> None:
    """As `write`, for text with colours: the caller has made other control characters visible."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))


def write_utf8(parts: Iterable[str]) -> None:
    """A document on stdout, in UTF-8 whatever the encoding of the terminal."""
    sys.stdout.flush()
    for part in parts:
        sys.stdout.buffer.write(show_controls(part).encode())
    sys.stdout.buffer.flush()


def console(*, stderr: bool) -> Console:
    """A rich console on a terminal; rich itself respects NO_COLOR."""
    from rich.console import Console
    from rich.theme import Theme

    # By default rich prints code on black, which is hard to read on a light terminal.
    return Console(stderr=stderr, highlight=False, theme=Theme({"markdown.code": "bold cyan"}))


def write_file(path: Path, text: str) -> None:
    """Write the text to the file, or raise UsageError."""
    try:
        path.write_text(show_controls(text), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}. Name another file with -o.") from None


def check_writable(path: Path | None) -> None:
    """Raise UsageError, before the run costs anything, if the answer cannot be written there."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder: -o takes a file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"There is no folder {path.absolute().parent} for {path.name}: make it, or name another file.")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise UsageError(f"{path} cannot be written: permission denied. Name another file with -o.")


def _utf8(stream: Any) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"


def terminal_columns() -> int:
    """The width of the terminal, as `shutil` computes it. Importing `shutil` would also load the archive formats."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    for stream in (sys.__stdout__, sys.__stderr__):
        if columns <= 0 and stream is not None:
            with suppress(ValueError, OSError):
                columns = os.get_terminal_size(stream.fileno()).columns
    return columns if columns > 0 else 80
