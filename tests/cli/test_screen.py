"""What is printed, and how wide."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

import pytest

from chargehand.cli.screen import Screen, fit, terminal_columns, wrap
from chargehand.text.redaction import Redactor


@pytest.mark.parametrize("columns", ["0", "-5", "wide", "", "37", None])
def test_the_width_is_what_the_standard_library_says(columns: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without loading it: a width that is no number, or none, is that of the terminal, and else 80."""
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert terminal_columns() == shutil.get_terminal_size().columns


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_lines_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below the beginning of a line is indented; a name that is longer than the line stays whole."""
    monkeypatch.setenv("COLUMNS", "30")
    text = f"label      {'word ' * 8}\n  - {'item ' * 8}\n{'x' * 40}"
    lines = fit(text, Terminal(), below=11).splitlines()
    assert lines[:2] == ["label      word word word word", "           word word word word"]
    assert lines[-1] == "x" * 40
    assert fit("  - some item that goes on and on", Terminal()) == "  - some item that goes on and\n    on"
    assert fit(text, io.StringIO()) == text


def test_a_command_to_copy_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a line of its own where it does not fit behind its words; so has one that begins its line."""
    monkeypatch.setenv("COLUMNS", "30")
    paused = "chargehand: Run r1 is paused just now. Continue it with: chargehand resume r1"
    assert fit(paused, Terminal()).splitlines() == [
        "chargehand: Run r1 is paused",
        "just now. Continue it with:",
        "  chargehand resume r1",
    ]
    long = "  chargehand run 'A request of many words' --model scripted"
    assert fit(f"Try it:\n{long}", Terminal()) == f"Try it:\n{long}"
    assert fit("See: chargehand show r1", Terminal()) == "See: chargehand show r1"
    install = "pip install 'chargehand[a,b]'"
    assert fit(f"extras:\n{' ' * 9}{install}", Terminal()) == f"extras:\n {install}", "less indented, it fits"


def test_a_block_of_commands_in_an_answer_is_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words around it are."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    command = f"cd project && python -c 'print({'1 + ' * 20}1)'"
    Screen(Redactor()).answer(f"- {'word ' * 12}\n\n```sh\n{command}\n```\n\n## After\n")
    lines = shown.getvalue().splitlines()
    assert command in lines
    assert "After" in lines[-1]
    assert all(len(line) < 60 for line in lines if line != command)


def test_a_file_is_a_link_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with NO_COLOR; what is shown is the path, without secrets."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen, path = Screen(Redactor()), Path("/tmp/a page.html")
    assert screen.link(path, Terminal()) == "\033]8;;file:///tmp/a%20page.html\033\\/tmp/a page.html\033]8;;\033\\"
    assert screen.link(path, io.StringIO()) == "/tmp/a page.html"
    monkeypatch.setenv("NO_COLOR", "1")
    assert screen.link(path, Terminal()) == "/tmp/a page.html"


def test_numbers_in_a_table_are_on_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    """The last column is on the left, whatever it is called."""
    rows = [("t1", "9.0 s", "left"), ("t10", "12.0 s", "right")]
    Screen(Redactor()).table(("task", "time", "summary"), rows, numbers=("time",))
    assert capsys.readouterr().out.splitlines() == [
        "task    time  summary",
        "t1     9.0 s  left",
        "t10   12.0 s  right",
    ]


@pytest.mark.parametrize("width", range(20, 60))
def test_no_line_begins_with_a_separator(width: int) -> None:
    """It ends the line before, and no word is lost."""
    text = "partial: 5 of 6 tasks done · 5.5 s · 14 calls, 13,617 tokens · cost unknown · confidence 80"
    lines = wrap(text, width)
    assert " ".join(lines) == text
    assert not [line for line in lines if line.startswith("·")]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", range(24, 60))
def test_a_number_and_its_unit_stay_on_one_line(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both ways of breaking lines."""
    text = "gap t4: the call took 12.5 s of 2 min 05 s, 30 % of the input came from the cache and 4 MB were read"
    monkeypatch.setenv("COLUMNS", str(width))
    for lines in (wrap(text, width), fit(text, Terminal()).split("\n")):
        assert " ".join(lines) == text
        assert not [line for line in lines if line.split()[0] in ("s", "s,", "min", "%", "MB")]
