"""Verified files are written to the project's disk; no existing file is overwritten."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import chain, count, takewhile
from pathlib import Path

from chargehand.apps.testgen.places_of_tests import CONFTEST
from chargehand.errors import UsageError


def default_folder(root: Path) -> Path:
    """Raises UsageError if a link leads out of the project."""
    folder = root / "tests" / "generated"
    if not folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} leads out of the project to {folder.resolve()}: name a folder for the tests.")
    return folder


def check_folder(folder: Path) -> None:
    """Raises UsageError, before anything costs money, if files could not be written there."""
    at = folder.absolute()
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise UsageError(f"{at} is not a folder: name another one for the tests.")
    if not os.access(at, os.W_OK):
        raise UsageError(f"{at} cannot be written to: name another folder for the tests.")


class FileWriter:
    """Writes each file to a folder as soon as it is verified, so that it is kept whatever happens next.

    `taken` are names of tests elsewhere. `conftest` is written next to the files unless there is one.
    """

    def __init__(self, folder: Path, taken: Collection[str] = (), conftest: str = "") -> None:
        self._folder = folder
        self._taken = frozenset(taken)
        self._conftest = conftest
        # Name -> where it is now.
        self.written: dict[str, Path] = {}
        # Files that this object made and may remove.
        self._made: set[Path] = set()

    def write(self, name: str, text: str) -> None:
        """A name that is taken gets a number. A file with the same text is not written again."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # First, because without it the tests do not find the code.
            if self._conftest and not (self._folder / CONFTEST).exists():
                self._write(CONFTEST, self._conftest, ())
            self.written[name] = self._write(name, text, self._taken)
        except OSError as error:
            raise UsageError(
                f"The tests cannot be written to {self._folder}: {error.strerror}. Name another folder for them."
            ) from None

    @property
    def conftest(self) -> Path | None:
        """The conftest.py next to the files, if it is the one that was written for them."""
        path = self._folder / CONFTEST
        return path if self._conftest and _holds(path, self._conftest) else None

    def take_back(self, name: str) -> None:
        """Remove a file that this object made, and with the last file also its conftest.py."""
        path = self.written.pop(name, None)
        with suppress(OSError):
            if path in self._made:
                path.unlink()
            if not self.written and (beside := self._folder / CONFTEST) in self._made:
                beside.unlink()

    def find(self, name: str, text: str) -> Path:
        """The path of a file with this text; if it does not exist any more, the first path to try."""
        places = self._places(name, self._taken)
        first = next(places)
        for path in (first, *takewhile(Path.exists, places)):
            if _holds(path, text):
                return path
        return first

    def _write(self, name: str, text: str, taken: Collection[str]) -> Path:
        for path in self._places(name, taken):
            try:
                with path.open("x", encoding="utf-8") as file:
                    file.write(text)
            except FileExistsError:
                if _holds(path, text):
                    return path
            else:
                self._made.add(path)
                return path
        raise AssertionError("there is always another number")

    def _places(self, name: str, taken: Collection[str]) -> Iterator[Path]:
        """The name, then the name with rising numbers."""
        numbered = (f"{Path(name).stem}_{number}.py" for number in count(2))
        return (self._folder / each for each in chain([name], numbered) if each not in taken)


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()
