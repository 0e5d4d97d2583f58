"""Verified files become files on the real disk, beside what is there and never over it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from chargehand.errors import UsageError
from chargehand.testgen.placing import CONFTEST


def default_folder(root: Path) -> Path:
    """UsageError when a link leads it out of the project."""
    folder = root / "tests" / "generated"
    if not folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(f"{folder} leads out of the project to {folder.resolve()}: name a folder with --out.")
    return folder


def check_folder(folder: Path) -> None:
    """Before anything is spent: UsageError when files could not be put there."""
    at = folder.absolute()
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise UsageError(f"{at} is not a folder: name another one with --out.")
    if not os.access(at, os.W_OK):
        raise UsageError(f"{at} cannot be written to: name another folder with --out.")


def write_files(
    files: Mapping[str, str], folder: Path, taken: Collection[str] = (), conftest: str = ""
) -> dict[str, Path]:
    """Name -> where it is now. A name that is taken gets a number; the same text under it is left as it is.

    `taken` are names that tests elsewhere have. `conftest` goes beside the files unless there is one.
    """
    written: dict[str, Path] = {}
    try:
        if files:
            folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            written[name] = _write(folder, name, text, taken)
        if files and conftest and not (folder / CONFTEST).exists():
            _write(folder, CONFTEST, conftest, ())
    except OSError as error:
        raise UsageError(
            f"The tests cannot be written to {folder}: {error.strerror}. Name another folder with --out."
        ) from None
    return written


def _write(folder: Path, name: str, text: str, taken: Collection[str]) -> Path:
    stem, number = Path(name).stem, 1
    while True:
        path = folder / (name if number == 1 else f"{stem}_{number}.py")
        if path.name in taken:
            number += 1
            continue
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            if path.is_file() and path.read_bytes() == text.encode():
                return path
            number += 1
