"""The home of runs: a folder that holds one record per run, what came with it, and the index that lists them.

    index.sqlite        the list (`index.py`), a copy that is repaired from the records
    runs/<run>.sqlite   the record, with <run>.lock next to it
    runs/<run>.cancel   exists while the run is asked to stop
    runs/<run>/         the run's own folder: material from standard input, documents/ that tools wrote, and orders/ to
                        the run that have no verdict yet

Reading never creates anything; folders are made, for their owner only, at the first write.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import closing
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargehand.errors import ChargehandError, RunNotFound, RunOwned, UsageError
from chargehand.record import lock
from chargehand.record.index import Lesson, RunIndex, RunInfo, head, summarise
from chargehand.record.lock import OwnerLock
from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import damage_error, storage
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.status_words import RunStatus

if TYPE_CHECKING:
    from chargehand.events import Event
    from chargehand.record.mailbox import FolderMailbox
    from chargehand.record.replay import Replay
    from chargehand.record.sqlite_journal import SqliteJournal
    from chargehand.values.estimate import PastRun

SUFFIX = ".sqlite"
_RUN = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
# Lower-case letters and digits that are hard to confuse with each other.
_LETTERS = "abcdefghjkmnpqrstvwxyz0123456789"
# Run ids must not repeat, even after a fork of the process.
_CHANCE = random.SystemRandom()
_PRUNABLE: tuple[RunStatus, ...] = ("interrupted", "cancelled", "complete", "partial", "failed")
_DAY_S = 86_400.0
# The most runs that an error names, if the beginning of an id is that of many.
_MOST_NAMED = 5
# When a file was last changed, in nanoseconds, and its length.
_Mark = tuple[int, int]


def default_path(environ: Mapping[str, str]) -> Path:
    """CHARGEHAND_HOME, else `.chargehand` in the user's own folder."""
    path = Path(environ.get("CHARGEHAND_HOME") or "~/.chargehand").expanduser()
    if os.path.isfile(path):
        raise UsageError(f"The home {path} is a file, not a folder: set CHARGEHAND_HOME to a folder.")
    return path


def new_run_id(now: float) -> str:
    """Sorts by time and can be typed: `20250131-235959-k7fq`, in UTC."""
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    return f"{stamp}-{''.join(_CHANCE.choice(_LETTERS) for _ in range(4))}"


class Home:
    """One home. It keeps nothing open between calls, so that any number of processes may share it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path(os.environ) if path is None else path
        self._runs = self.path / "runs"
        self._index = RunIndex(self.path / "index.sqlite")

    # --- one run ---------------------------------------------------------------------------------------------------

    def create(self, run: str | None = None) -> SqliteJournal:
        """A new run's record, owned by this process."""
        name = new_run_id(time.time()) if run is None else run
        if not _RUN.fullmatch(name) or name == "last":
            raise UsageError(f"{name!r} cannot name a run: use letters, digits, - and _, at most 80, and not `last`.")
        with storage(self._runs):
            taken = self._record(name).exists()
        if taken:
            raise UsageError(f"There is a run {name} already in {self.path}. Choose another name or resume it.")
        private_folder(self.path)
        private_folder(self._runs)
        # The run is entered in the index when it is listed, or when it ends.
        return _sqlite_journal().create(self._record(name))

    def open(self, run: str, token: int | None = None) -> SqliteJournal:
        """The record of a run, owned by this process from now on; RunOwned when another one has it.

        `token` is the number of this owner if owners are counted elsewhere; OwnershipLost if a later owner has opened
        the run.
        """
        return _sqlite_journal().open(self._not_emptied(run), token)

    def read(self, run: str) -> SqliteJournal:
        """The record of a run for reading, whoever owns it."""
        return _sqlite_journal().read(self._not_emptied(run))

    def events(self, run: str, after: int = 0) -> Iterator[Event]:
        """The committed events of a run in order, those with a larger `seq` than `after`; whoever owns it."""
        with closing(self.read(run)) as record:
            yield from record.events(after)

    def last_event(self, run: str) -> int:
        """The number of the last committed event of a run; 0 before there is one."""
        with closing(self.read(run)) as record:
            return record.last_seq()

    def change_mark(self, run: str) -> tuple[_Mark | None, _Mark | None]:
        """Equal marks mean that nothing was committed in between, unless within one tick of the file system's clock."""
        # Text, because a list asks for fifty marks and a Path takes longer than the look at the file.
        record = f"{self._runs}/{run}{SUFFIX}"
        return _mark(record), _mark(f"{record}-wal")

    def messages(self, run: str, hashes: Iterable[str]) -> dict[str, bytes]:
        """The messages of a run's model calls, by the hashes under which its events name them."""
        with closing(self.read(run)) as record:
            return record.messages(hashes)

    def state(self, run: str) -> Replay:
        """The record of a run, folded."""
        from chargehand.record.replay import replay

        return replay(self.events(run), run)

    def has(self, run: str) -> bool:
        """Whether the record of a run is there."""
        record = self._record(run)
        with storage(record):
            return _RUN.fullmatch(run) is not None and record.is_file()

    def folder(self, run: str) -> Path:
        """The run's own folder, made if it is missing."""
        path = self._existing(run).with_suffix("")
        private_folder(path)
        return path

    def documents(self, run: str) -> list[Path]:
        """The documents that workers of the run wrote, by name."""
        folder = self._record(run).with_suffix("") / "documents"
        with storage(folder):
            return sorted(path for path in folder.glob("[!.]*") if path.is_file())

    def orders(self, run: str) -> FolderMailbox:
        """The orders to a run that have no verdict yet."""
        from chargehand.record.mailbox import FolderMailbox

        return FolderMailbox(self._existing(run).with_suffix("") / "orders")

    def owner(self, run: str) -> str | None:
        """The process that executes this run now, in words; None if there is none."""
        return lock.owner(self._record(run).with_suffix(".lock"))

    def request_cancel(self, run: str) -> None:
        """Ask the owner, whichever process it is, to stop."""
        marker = self._existing(run).with_suffix(".cancel")
        with storage(marker):
            marker.touch(mode=0o600)

    def cancel_requested(self, run: str) -> bool:
        try:
            os.stat(self._record(run).with_suffix(".cancel"))
        except OSError:
            return False
        return True

    def clear_cancel(self, run: str) -> None:
        marker = self._record(run).with_suffix(".cancel")
        with storage(marker):
            marker.unlink(missing_ok=True)

    # --- all runs --------------------------------------------------------------------------------------------------

    def find(self, name: str) -> str:
        """The id meant by `last`, an id, or the beginning of just one."""
        if name == "last":
            tops = (info.run for info in self.runs(None) if info.parent is None)
            if (newest := next(tops, None)) is None:
                raise RunNotFound(f"There are no runs in {self.path} yet.", command="`chargehand run` starts one.")
            return newest
        if self.has(name):
            return name
        ids = self._ids()
        # Newest first: an id begins with when its run began.
        begun = sorted((run for run in ids if name and run.startswith(name)), reverse=True)
        if len(begun) == 1:
            return begun[0]
        raise _not_found(name, begun, ids, self.path)

    def runs(self, limit: int | None = None) -> list[RunInfo]:
        """Runs, newest first, from the index, which is repaired from the records where it is out of date."""
        known = self._index.load()
        ids = self._ids(known.keys())
        if gone := known.keys() - ids:
            known = self._index.load(all_again=True)
        died = [run for run, info in known.items() if info.status == "running" and self._has_died(info)]
        # Oldest first, as lines are entered when runs end: what is nearly in order is sorted fast.
        refolded, unreadable = self._fold(sorted(ids - known.keys() | ids.intersection(died)))
        if refolded or gone:
            # A home that cannot be written to is still listed; the next process that can write repairs the index.
            self._index.put(refolded.values(), gone)
        lines = known | refolded | unreadable
        listed = [info for run, info in lines.items() if run in ids] if gone else list(lines.values())
        # Twice, by one field each, which takes half as long as once by two.
        listed.sort(key=_RUN_ID, reverse=True)
        listed.sort(key=_STARTED, reverse=True)
        return [self._as_it_is(info) if info.status == "interrupted" else info for info in listed[:limit]]

    def list_mark(self) -> object:
        """Equal marks mean that no run was begun, ended or removed in between; a run may have died."""
        return _mark(self._runs), _mark(self.path / "index.sqlite")

    def note(
        self,
        run: str,
        *,
        status: RunStatus | None = None,
        ended: float | None = None,
        request: str | None = None,
        team: str | None = None,
        parent: str | None = None,
        started: float | None = None,
        lesson: Lesson | None = None,
    ) -> str | None:
        """Update a run's line in the index; a warning when that failed. Status `running` removes an earlier end.

        A missing line is folded from the record, unless `started` is given: then the arguments are the whole line.
        """
        given = {
            "started": started,
            "status": status,
            "ended": ended,
            "request": None if request is None else head(request),
            "team": team,
            "parent": parent,
        }
        update: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
        if status == "running":
            update = {"ended": None} | update

        def change(old: RunInfo | None) -> RunInfo:
            if old is None:
                old = self._fold_run(run) if started is None else RunInfo(run=run, started=started)
            return old._replace(**update)

        return self._index.change(run, change, lesson)

    def past_runs(self, team: str, model: str) -> list[PastRun]:
        """The expected and the real figures of the team's last runs with these models; oldest first."""
        return self._index.past_runs(team, model)

    def prune(
        self,
        keep: int | None = None,
        older_than_days: float | None = None,
        statuses: Collection[RunStatus] | None = None,
    ) -> list[str]:
        """Remove runs for good and say which. Given both limits, a run goes only if it is old and not among the `keep`
        newest.

        Runs that wait for a person are removed only if `statuses` names `waiting`; a run with an owner is never
        removed.
        """
        return self.remove(info.run for info in self.prunable(keep, older_than_days, statuses))

    def remove(self, runs: Iterable[str]) -> list[str]:
        """Remove these runs for good and say which: a run with an owner is not removed."""
        removed = [run for run in runs if self._remove(run)]
        if removed:
            self._index.put([], removed)
        return removed

    def prunable(
        self,
        keep: int | None = None,
        older_than_days: float | None = None,
        statuses: Collection[RunStatus] | None = None,
    ) -> list[RunInfo]:
        """The runs `prune` would remove, newest first."""
        if keep is None and older_than_days is None and statuses is None:
            raise UsageError("Say which runs to remove: how many to keep, from what age, or with what status.")
        allowed = _PRUNABLE if statuses is None else statuses
        before = None if older_than_days is None else time.time() - older_than_days * _DAY_S
        return [
            info
            for info in self.runs(None)[max(keep or 0, 0) :]
            if info.status in allowed and (before is None or (info.ended or info.started) < before)
        ]

    # --- inside ----------------------------------------------------------------------------------------------------

    def _record(self, run: str) -> Path:
        return self._runs / f"{run}{SUFFIX}"

    def _existing(self, run: str) -> Path:
        if not self.has(run):
            raise _not_found(run, [], self._ids(), self.path)
        return self._record(run)

    def _not_emptied(self, run: str) -> Path:
        """The record, unless it is an empty file: a run that was killed before its first event left at least a page.

        A record that is just being made is empty too, before its lock exists or while the lock is held.
        """
        record = self._existing(run)
        with storage(record):
            made = record.stat().st_size > 0 or not record.with_suffix(".lock").exists()
        if not made and self.owner(run) is None:
            raise damage_error(
                record, "it is empty: the run stopped as its record was made, or the file was emptied since"
            )
        return record

    def _ids(self, known: Set[str] = frozenset()) -> set[str]:
        """The runs that have a record. The names of `known` runs are not checked again: there may be ten thousand."""
        with storage(self._runs):
            try:
                names = os.listdir(self._runs)
            except (FileNotFoundError, NotADirectoryError):
                return set()
        ids = {name[: -len(SUFFIX)] for name in names if name.endswith(SUFFIX)}
        return ids.difference([name for name in ids - known if not _RUN.fullmatch(name)])

    def _fold(self, runs: list[str]) -> tuple[dict[str, RunInfo], dict[str, RunInfo]]:
        """The lines of runs, from their records; and, separately, the lines of records that cannot be read now."""
        folded: dict[str, RunInfo] = {}
        unreadable: dict[str, RunInfo] = {}
        for run in runs:
            try:
                folded[run] = self._summary(run)
            except ChargehandError as error:
                unreadable[run] = RunInfo(run=run, started=self._born(run), status="failed", request=head(str(error)))
        return folded, unreadable

    def _fold_run(self, run: str) -> RunInfo:
        folded, unreadable = self._fold([run])
        return (folded | unreadable)[run]

    def _summary(self, run: str) -> RunInfo:
        info = self._summary_at_rest(run)
        if info is None:
            with closing(self.read(run)) as journal:
                info = summarise(run, journal, self._born(run))
        return info._replace(status="interrupted") if self._has_died(info) else info

    def _summary_at_rest(self, run: str) -> RunInfo | None:
        """The line of a run that no process has open, read from its file alone; None if a process has or had it open.

        SQLite leaves two more files beside a record that it reads. With them, a folder of many runs takes three times
        as long to read.
        """
        mark = _, wal = self.change_mark(run)
        if wal is not None or self.owner(run) is not None:
            return None
        try:
            with closing(_sqlite_journal().read(self._not_emptied(run), at_rest=True)) as journal:
                info = summarise(run, journal, self._born(run))
        except ChargehandError:
            return None  # damaged, or changed by a process that opened it meanwhile: the other way of reading tells
        return info if self.change_mark(run) == mark else None

    def _born(self, run: str) -> float:
        try:
            return self._record(run).stat().st_mtime
        except OSError:
            return time.time()

    def _has_died(self, info: RunInfo) -> bool:
        """Whether it is listed as running without an owner: the owner died, perhaps after recording the end."""
        return info.status == "running" and self.owner(info.run) is None

    def _as_it_is(self, info: RunInfo) -> RunInfo:
        """Corrected for a resumed run: the index may not have it yet."""
        if info.status == "interrupted" and self.owner(info.run) is not None:
            return info._replace(status="running")
        return info

    def _remove(self, run: str) -> bool:
        """Remove all of a run, unless a process owns it. Its record goes late: a half-removed run is still listed."""
        import shutil  # loads the archive formats, which no other command needs

        record = self._record(run)
        try:
            held = OwnerLock(record.with_suffix(".lock"), run)
        except RunOwned:
            return False
        try:
            with storage(record):
                if record.with_suffix("").exists():
                    shutil.rmtree(record.with_suffix(""))
                for suffix in (".cancel", f"{SUFFIX}-wal", f"{SUFFIX}-shm", SUFFIX, ".lock"):
                    record.with_name(run + suffix).unlink(missing_ok=True)
        finally:
            held.release()
        return True


_RUN_ID = itemgetter(RunInfo._fields.index("run"))
_STARTED = itemgetter(RunInfo._fields.index("started"))


def _mark(path: Path | str) -> _Mark | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _sqlite_journal() -> type[SqliteJournal]:
    """Loaded when a record is opened: a listing that is up to date needs neither records nor the event loop."""
    from chargehand.record.sqlite_journal import SqliteJournal

    return SqliteJournal


def _not_found(name: str, begun: list[str], ids: Collection[str], home: Path) -> RunNotFound:
    if begun:
        more = f" and {len(begun) - _MOST_NAMED:,} more" if len(begun) > _MOST_NAMED else ""
        named = ", ".join(begun[:_MOST_NAMED])
        return RunNotFound(f"{len(begun):,} runs begin with {name!r}: {named}{more}. Give more of the one you mean.")
    from difflib import get_close_matches

    near = get_close_matches(name, ids, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return RunNotFound(f"There is no run {name!r} in {home}.{hint}", command="`chargehand runs` lists those there are.")
