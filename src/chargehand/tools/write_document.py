"""A name and a text become a document in the run's own folder, and never a file anywhere else."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from chargehand.errors import ToolError
from chargehand.tools.definition import tool
from chargehand.tools.tool_context import ToolContext
from chargehand.values.lazy_regex import lazy_regex

FOLDER = "documents"
MAX_NAME = 100
MAX_BYTES = 1_000_000
MAX_DOCUMENTS = 200
ENDINGS = ("md", "txt", "rst", "csv", "tsv", "json", "jsonl", "yaml", "yml", "toml", "xml", "tex", "ics")
NAME = lazy_regex(rf"\w[\w ()+,&-]*(?:\.[\w ()+,&-]+)*\.(?:{'|'.join(ENDINGS)})")
# Names of devices on Windows, with any ending.
DEVICE = lazy_regex(r"(?:con|prn|aux|nul|com\d|lpt\d|conin|conout|clock)(?:\s*\..*)?", re.IGNORECASE)


@tool(effect="idempotent")
def write_document(context: ToolContext, name: str, text: str) -> str:
    """Write a document for the person who asked. One of the same name is replaced. Answers where it is.

    Args:
        name: a plain file name without folders, like launch-plan.md
        text: the whole document
    """
    _check_name(name)
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise ToolError(
            f"The document has {len(data):,} bytes; at most {MAX_BYTES:,} are written. Split it.", "too_large"
        )
    if context.keep_document is not None:
        return _describe(name, data, replaced=context.keep_document(name, data))
    if context.folder is None:
        raise ToolError(
            "This run keeps no folder, so no document can be written; put the text into the answer.", "unavailable"
        )
    try:
        with _documents(context.folder) as folder:
            replaced = _write(name, data, folder)
    except OSError as error:
        # The system's own message would show the real path.
        raise ToolError(f"{name} cannot be written: {error.strerror or type(error).__name__}.") from None
    return _describe(name, data, replaced=replaced)


def _describe(name: str, data: bytes, *, replaced: bool) -> str:
    return f"{'Replaced' if replaced else 'Wrote'} {FOLDER}/{name} ({len(data):,} bytes) in the folder of this run."


def _check_name(name: str) -> None:
    # Compared in the form in which it is written: two names that look the same must not become two files.
    fits = (
        len(name) <= MAX_NAME and len(name.encode("utf-8", "replace")) <= 200 and unicodedata.is_normalized("NFC", name)
    )
    if not fits or not NAME.fullmatch(name) or DEVICE.fullmatch(name):
        shown = "".join(c if c.isprintable() else "?" for c in name[:100])
        raise ToolError(
            f"{shown or 'The empty name'} cannot name a document: use letters, digits, blanks, - and _, at most "
            f"{MAX_NAME}, no folders, and one of the endings {', '.join(ENDINGS)}.",
            "wrong_arguments",
        )


@contextmanager
def _documents(run: Path) -> Generator[int, None, None]:
    """A descriptor of the folder for documents; it and the run's folder are made if they do not exist."""
    run.mkdir(mode=0o700, parents=True, exist_ok=True)
    outer = os.open(run, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(FOLDER, 0o700, dir_fd=outer)
        # A link in its place is not followed.
        inner = os.open(FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=outer)
    finally:
        os.close(outer)
    try:
        yield inner
    finally:
        os.close(inner)


def _write(name: str, data: bytes, folder: int) -> bool:
    """Write the whole document or nothing; True when it replaced one."""
    there = set(os.listdir(folder))
    if name not in there and len(there) >= MAX_DOCUMENTS:
        raise ToolError(f"There are {MAX_DOCUMENTS} documents already; write into one of them.", "too_large")
    draft = f".{os.urandom(8).hex()}"
    try:
        handle = os.open(
            draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder
        )
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        raise
    return name in there
