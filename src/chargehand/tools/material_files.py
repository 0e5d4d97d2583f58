"""The request's material as names: finding, opening, listing and hashing files that a worker may see, and no others.

A worker knows a file as `NAME` or `NAME/relative/path`. A name is resolved once, compared with the real root of its
material, and then opened one folder at a time without following links, so that a file swapped in meanwhile is not used.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from chargehand.errors import ToolError, ToolErrorCode
from chargehand.tools import glob as pattern
from chargehand.values.request import Material

# A worker need not have a tool that lists files: so many are named to it, out of at most so many entries of folders.
MOST_NAMED = 10
_ENTRIES_FOR_NAMES = 1_000
_SPECIAL = "Not a regular file"
MAX_FILE = 10_000_000
# A data file, such as a table, may be larger than a text that a model reads.
MAX_DATA = 200_000_000
# The most entries that one listing reads: a folder with millions of entries must not take forever.
MAX_ENTRIES = 100_000
SKIPPED = ".git"
PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class HasMaterial(Protocol):
    """What a tool is given: a `ToolContext`, which reads files through this module."""

    @property
    def material(self) -> Sequence[Material]: ...

    @property
    def hidden(self) -> Path | None:
        """A folder that tools do not see."""
        ...


class FilePlace(NamedTuple):
    """A resolved name: `parts` lead to it from the real `root`, without a link on the way."""

    name: str
    root: str
    parts: tuple[str, ...]
    # The real path of the folder that tools do not see.
    hidden: str | None = None
    # The name of `root`.
    material: str = ""


class Listing(NamedTuple):
    """Names of files in order; `complete` is False when there were too many entries to read."""

    names: tuple[str, ...]
    complete: bool


def locate(name: str, context: HasMaterial) -> FilePlace:
    """The place that a worker's path names; a ToolError that names files when it is not inside the material."""
    if not context.material:
        raise ToolError("No material was given with this request, so there are no files to read.", "unavailable")
    try:
        return _find_place(name, context)
    except ToolError as error:
        raise ToolError(f"{error}{_name_files(_places(context))}", error.code) from None


def _find_place(name: str, context: HasMaterial) -> FilePlace:
    if "\0" in name or len(name) > 4096:
        raise ToolError("Not a path.", "wrong_arguments")
    if name.startswith("/"):
        _refuse(name, "is absolute")
    wanted = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in wanted:
        _refuse(name, "contains `..`")
    for material in context.material:
        own = [part for part in material.name.split("/") if part]
        if own and wanted[: len(own)] == own:
            place = _hide(_resolve("/".join(wanted), material.path, wanted[len(own) :]), context)
            _check_seen(place)
            return place._replace(material="/".join(own))
    _refuse(name, f"is in none of the materials ({', '.join(each.name for each in context.material)})", "not_found")


def _places(context: HasMaterial) -> Iterator[FilePlace]:
    """The places of the material that can be read."""
    for each in _distinct_material(context):
        try:
            yield _find_place(each.name, context)
        except ToolError:
            continue


def _name_files(places: Iterable[FilePlace]) -> str:
    """A sentence that names files under these places; empty if there are none."""
    budget = [_ENTRIES_FOR_NAMES]
    found = (one_line_name(name) for place in places for name in _walk(place, budget))
    names = list(islice(found, MOST_NAMED + 1))
    if len(names) <= MOST_NAMED and budget[0] > 0:
        return f" The files are: {', '.join(names)}." if names else ""
    return f" Some of the files are: {', '.join(names[:MOST_NAMED])}." if names else ""


def read(place: FilePlace, most: int = MAX_FILE) -> bytes:
    """The bytes of a regular file of at most `most`; ToolError for anything else."""
    with _stream(place, most) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ToolError(
            f"{one_line_name(place.name)} is over {most // 10**6} MB; such files are not read.", "too_large"
        )
    return data


def open_file(place: FilePlace, most: int) -> BufferedReader:
    """A regular file of at most `most` bytes, open for reading; ToolError for anything else."""
    with _stream(place, most) as stream:
        return os.fdopen(os.dup(stream.fileno()), "rb")


def digest(place: FilePlace, most: int) -> str:
    """The SHA-256 of a regular file, however large it is up to `most`."""
    with _stream(place, most) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _stream(place: FilePlace, most: int) -> Generator[BufferedReader, None, None]:
    try:
        with _open_place(place, os.O_NONBLOCK) as file:
            found = os.fstat(file)
            if stat.S_ISDIR(found.st_mode):
                raise ToolError(
                    f"{one_line_name(place.name)} is a folder: name a file in it.{_name_files([place])}", "not_readable"
                )
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, _SPECIAL)
            if found.st_size > most:
                size = found.st_size / 1e6
                raise ToolError(
                    f"{one_line_name(place.name)} is {size:.0f} MB; files over {most // 10**6} MB are not read.",
                    "too_large",
                )
            with os.fdopen(os.dup(file), "rb") as stream:
                yield stream
    except OSError as error:
        # The system's own message would show the real path.
        others = _name_files([FilePlace(place.material, place.root, (), place.hidden)])
        why = f"{one_line_name(place.name)} cannot be read: {error.strerror or type(error).__name__}.{others}"
        raise ToolError(why, "not_readable") from None


def files(glob: str, path: str | None, context: HasMaterial, limit: int | None = None) -> Listing:
    """The files under `path` (all material without it) whose name fits `glob`, at most `limit` of them, in order."""
    places = [locate(path, context)] if path else [locate(each.name, context) for each in _distinct_material(context)]
    fits = pattern.compile_glob(glob)
    budget = [MAX_ENTRIES]
    names: list[str] = []
    for place in places:
        base = len(place.name) + 1
        for name in _walk(place, budget):
            if fits(name[base:] or name.rpartition("/")[2], name):
                names.append(name)
                if limit is not None and len(names) >= limit:
                    return Listing(tuple(names), complete=budget[0] > 0)
    return Listing(tuple(names), complete=budget[0] > 0)


def one_line_name(name: str) -> str:
    """The name for people and models, always on one line."""
    if name.isprintable():
        return name
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in name) + '"'


def _distinct_material(context: HasMaterial) -> list[Material]:
    if not context.material:
        raise ToolError("No material was given with this request, so there are no files to list.", "unavailable")
    return list({each.name: each for each in reversed(context.material)}.values())[::-1]


def _resolve(name: str, root: str, rest: list[str]) -> FilePlace:
    try:
        real_root = os.path.realpath(root, strict=True)
        real = os.path.realpath(os.path.join(real_root, *rest), strict=True)
    except FileNotFoundError:
        _refuse(name, "does not exist", "not_found")
    except UnicodeEncodeError:
        _refuse(name, "is not a file name", "wrong_arguments")
    except OSError as error:
        _refuse(name, f"cannot be read: {error.strerror or type(error).__name__}", "not_readable")
    if real == real_root:
        return FilePlace(name, real_root, ())
    inside = real_root.rstrip("/") + "/"
    if not real.startswith(inside):
        _refuse(name, "leads outside of its material")
    return FilePlace(name, real_root, tuple(real[len(inside) :].split("/")))


def _hide(place: FilePlace, context: HasMaterial) -> FilePlace:
    """The place with its hidden folder. Material in a run's own folder hides nothing: it was put there for the run."""
    if context.hidden is None:
        return place
    hidden = os.path.realpath(context.hidden)
    of_run = place.root.startswith(f"{hidden}/runs/")
    return place if of_run else place._replace(hidden=hidden)


def _check_seen(place: FilePlace) -> None:
    real = "/".join((place.root, *place.parts))
    if place.hidden is not None and f"{real}/".startswith(f"{place.hidden}/"):
        _refuse(place.name, "is in the folder in which chargehand keeps its runs, which workers do not see")


@contextmanager
def _open_place(place: FilePlace, flags: int) -> Generator[int, None, None]:
    """A descriptor of the place, reached from its root without following any link."""
    _check_seen(place)
    if not place.parts and not _harmless(os.lstat(place.root).st_mode):
        raise OSError(errno.EINVAL, _SPECIAL)
    here = os.open(place.root, PLAIN | (os.O_DIRECTORY if place.parts else flags))
    try:
        for at, part in enumerate(place.parts, 1):
            last = at == len(place.parts)
            if last and not _harmless(os.lstat(part, dir_fd=here).st_mode):
                raise OSError(errno.EINVAL, _SPECIAL)
            there = os.open(part, PLAIN | (flags if last else os.O_DIRECTORY), dir_fd=here)
            os.close(here)
            here = there
        yield here
    finally:
        os.close(here)


def _harmless(mode: int) -> bool:
    # Opening a device or a pipe can have effects or block.
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _walk(place: FilePlace, budget: list[int]) -> Iterator[str]:
    """Names of the regular files under a place, each folder in order; linked folders are not entered."""
    # Folders still to enter, and files (without parts) still to name; the next one is last.
    todo: list[tuple[str, tuple[str, ...] | None]] = [(place.name, place.parts)]
    while todo:
        name, parts = todo.pop()
        if parts is None:
            yield name
            continue
        try:
            entries = _entries(FilePlace(name, place.root, parts, place.hidden), budget)
        except NotADirectoryError:
            yield name
        except (OSError, ToolError):
            # Unreadable, special or removed meanwhile: a worker does not see files that cannot be opened.
            continue
        else:
            for entry, folder in sorted(entries, reverse=True):
                todo.append((f"{name}/{entry}", (*parts, entry) if folder else None))


def _entries(place: FilePlace, budget: list[int]) -> list[tuple[str, bool]]:
    """The files (False) and folders (True) in a folder, as far as the budget of entries goes."""
    found: list[tuple[str, bool]] = []
    with _open_place(place, os.O_DIRECTORY) as folder, os.scandir(folder) as entries:
        for entry in entries:
            if budget[0] <= 0:
                break
            budget[0] -= 1
            # A model could not send back a name that is not UTF-8.
            if entry.name == SKIPPED or not _utf8(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append((entry.name, True))
            elif entry.is_file(follow_symlinks=False) or (entry.is_symlink() and _leads_to_file(place, entry.name)):
                found.append((entry.name, False))
    return found


def _leads_to_file(place: FilePlace, link: str) -> bool:
    try:
        found = _resolve(link, place.root, [*place.parts, link])._replace(hidden=place.hidden)
        with _open_place(found, os.O_NONBLOCK) as file:
            return stat.S_ISREG(os.fstat(file).st_mode)
    except (OSError, ToolError):
        return False


def _utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(name: str, why: str, code: ToolErrorCode = "not_allowed") -> NoReturn:
    raise ToolError(f"{one_line_name(name[:200]) or 'The empty path'} {why}.", code)
