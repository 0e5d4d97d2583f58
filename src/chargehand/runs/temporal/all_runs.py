"""Runs of a home and runs on Temporal that were started from it, as one source. A small file marks the latter:

HOME/temporal/RUN.json    the server and the blob store of a run
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import RUN
from chargehand.errors import ChargehandError, RunNotFound, UsageError
from chargehand.events import Event
from chargehand.record.home import Home
from chargehand.record.index import RunInfo
from chargehand.record.mailbox import Mailbox, UnreadableOrder
from chargehand.record.private_files import private_folder
from chargehand.record.replay import Replay, replay
from chargehand.runs.temporal.blob_source import BlobRecord
from chargehand.runs.temporal.connection import connect, open_store
from chargehand.runs.temporal.stored_run import BlobMailbox, find_start, read_documents
from chargehand.settings.settings import TemporalSettings
from chargehand.values.order import Order
from chargehand.values.request import Material
from chargehand.values.status_words import FINISHED, RunStatus

T = TypeVar("T")
# How many records are kept in memory: a record that is read repeatedly is not read from its beginning.
_MOST_RECORDS = 8
# How long a worker may need to take an order.
_NOTICE_S = 20
# For how long the server's answer whether a run is under way is used again.
_KNOWN_S = 2.0
_ENDED_KNOWN_S = 15.0
# A run without a record that is younger may be about to begin.
_BEGINS_S = 30.0


def runs_folder(home: Home) -> Path:
    return home.path / "temporal"


def note_run(
    home: Home,
    run: str,
    settings: TemporalSettings,
    team_ref: str | None = None,
    material: Mapping[str, str] | None = None,
) -> None:
    """Let commands of this home find the run, its team and the given files: the record has no paths."""
    private_folder(home.path)
    private_folder(runs_folder(home))
    path = runs_folder(home) / f"{run}.json"
    path.touch(mode=0o600)
    noted = settings.to_json() | {"team_ref": team_ref, "material": dict(material or {})}
    path.write_text(json.dumps(noted), encoding="utf-8")


def forget_run(home: Home, run: str) -> None:
    (runs_folder(home) / f"{run}.json").unlink(missing_ok=True)


class NotedRun(NamedTuple):
    """What a home knows of a run on Temporal."""

    settings: TemporalSettings
    team_ref: str | None
    # Name -> the path of what was given.
    material: dict[str, str]

    def material_here(self, material: Iterable[Material]) -> tuple[Material, ...] | None:
        """The material with the paths it was given with; None where a file no longer exists."""
        found = [each.model_copy(update={"path": self.material.get(each.name, "")}) for each in material]
        return tuple(found) if all(each.path and Path(each.path).exists() for each in found) else None


class AllRuns:
    """The runs of a home, and those on Temporal."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._stores: dict[str, BlobStore] = {}
        # Run -> what was read of it; the most recently used run is the last.
        self._records: dict[str, BlobRecord] = {}
        self._lock = threading.Lock()
        # Run -> when its line in the list was made, and the line.
        self._lines: dict[str, tuple[float, RunInfo]] = {}
        # Run -> when the server was last asked, and its answer.
        self._asked: dict[str, tuple[float, bool]] = {}

    def settings_of(self, run: str) -> TemporalSettings | None:
        """Where a run on Temporal is; None for a run of the home itself."""
        noted = self.find_note(run)
        return None if noted is None else noted.settings

    def find_note(self, run: str) -> NotedRun | None:
        """What this home knows of a run on Temporal; None for a run of the home itself."""
        try:
            said = json.loads((runs_folder(self.home) / f"{run}.json").read_text(encoding="utf-8"))
        except OSError:
            return None
        team_ref, material = said.pop("team_ref", None), said.pop("material", {})
        return NotedRun(TemporalSettings.model_validate(said), team_ref, material)

    def store_of(self, run: str) -> BlobStore | None:
        if (settings := self.settings_of(run)) is None:
            return None
        name = settings.model_dump_json()
        if name not in self._stores:
            self._stores[name] = open_store(settings)
        return self._stores[name]

    def _record(self, run: str, store: BlobStore) -> BlobRecord:
        """The record of a run, as it is now."""
        with self._lock:
            record = self._records.pop(run, None) or BlobRecord(store, run)
            self._records[run] = record
            while len(self._records) > _MOST_RECORDS:
                self._records.pop(next(iter(self._records)))
        record.refresh()
        return record

    def remote(self) -> list[str]:
        return sorted(path.stem for path in runs_folder(self.home).glob("*.json"))

    # -- the source port ---------------------------------------------------------------------------------------------

    def find(self, name: str) -> str:
        remote = self.remote()
        if name == "last":
            try:
                own = self.home.find("last")
            except RunNotFound:
                if not remote:
                    raise
                return remote[-1]
            return max([own, *remote])
        if name in remote:
            return name
        begun = [run for run in remote if name and run.startswith(name)]
        try:
            return self.home.find(name)
        except RunNotFound:
            if len(begun) == 1:
                return begun[0]
            raise

    def runs(self, limit: int | None = None) -> list[RunInfo]:
        found = [*self.home.runs(None), *(self._line(run) for run in self.remote())]
        found.sort(key=lambda info: info.started, reverse=True)
        return found[:limit]

    def list_mark(self) -> object:
        """Equal marks: no run was begun, ended or removed in between, here or on Temporal."""
        return self.home.list_mark(), tuple(self._line(run) for run in self.remote())

    def _line(self, run: str) -> RunInfo:
        looked, known = self._lines.get(run, (0.0, None))
        # One that has ended is seldom continued.
        if known is None or time.monotonic() - looked > (_KNOWN_S if known.ended is None else _ENDED_KNOWN_S):
            try:
                known = self._read_line(run)
            except ChargehandError as error:
                born = (runs_folder(self.home) / f"{run}.json").stat().st_mtime
                known = RunInfo(
                    run=run, started=born, ended=None, status="interrupted", request=f"cannot be read: {error}", team=""
                )
            self._lines[run] = time.monotonic(), known
        return known

    def _read_line(self, run: str) -> RunInfo:
        store = self.store_of(run)
        assert store is not None
        start = find_start(store, run) or {"request": {"text": ""}, "team": {"name": ""}}  # it is about to begin
        events = list(self._record(run, store).events())
        state = replay(events, run)
        born = (runs_folder(self.home) / f"{run}.json").stat().st_mtime
        status = _status(state)
        begun = events or time.time() - born > _BEGINS_S
        if begun and state.report is None and status == "running" and self.owner(run) is None:
            status = "interrupted"
        return RunInfo(
            run=run,
            started=events[0].at if events else born,
            ended=events[-1].at if events and state.report is not None else None,
            status=status,
            request=str(start["request"]["text"])[:200],
            team=start["team"]["name"],
        )

    def documents(self, run: str) -> list[Path]:
        """The documents that workers of the run wrote, by name; those on Temporal are fetched."""
        if (store := self.store_of(run)) is None:
            return self.home.documents(run)
        folder = runs_folder(self.home) / run / "documents"
        found = read_documents(store, run)
        if found:
            private_folder(folder.parent)
            private_folder(folder)
        for name, data in found.items():
            (folder / name).write_bytes(data)
        return sorted(folder / name for name in found)

    def state(self, run: str) -> Replay:
        store = self.store_of(run)
        if store is None:
            return self.home.state(run)
        state = replay(self._record(run, store).events(), run)
        if not state.start:  # no step has begun yet
            start = find_start(store, run) or {}
            state.start = {name: start[name] for name in ("request", "team", "settings") if name in start}
        return state

    def events(self, run: str, after: int = 0) -> Iterator[Event]:
        store = self.store_of(run)
        if store is None:
            yield from self.home.events(run, after)
        else:
            yield from self._record(run, store).events(after)

    def last_event(self, run: str) -> int:
        store = self.store_of(run)
        return self.home.last_event(run) if store is None else self._record(run, store).last_seq

    def change_mark(self, run: str) -> object:
        store = self.store_of(run)
        return self.home.change_mark(run) if store is None else self._record(run, store).last_seq

    def messages(self, run: str, hashes: Iterable[str]) -> dict[str, bytes]:
        store = self.store_of(run)
        return self.home.messages(run, hashes) if store is None else self._record(run, store).messages(hashes)

    def owner(self, run: str) -> str | None:
        settings, store = self.settings_of(run), self.store_of(run)
        if settings is None or store is None:
            return self.home.owner(run)
        if self._record(run, store).has_ended or not self._is_running(run, settings):
            return None
        return f"Temporal at {settings.address}"

    def _is_running(self, run: str, settings: TemporalSettings) -> bool:
        """The server's answer; a run whose server does not answer counts as under way."""
        asked, running = self._asked.get(run, (0.0, True))
        if (now := time.monotonic()) - asked > _KNOWN_S or not asked:
            try:
                running = run_beside(is_running(settings, run))
            except UsageError:
                running = True
            self._asked[run] = now, running
        return running

    def orders(self, run: str) -> Mailbox:
        settings, store = self.settings_of(run), self.store_of(run)
        if settings is None or store is None:
            return self.home.orders(run)
        return _RemoteMailbox(run, settings, store, self.state(run))

    def request_cancel(self, run: str) -> None:
        settings = self.settings_of(run)
        if settings is None:
            self.home.request_cancel(run)
        else:
            run_beside(_cancel(settings, run))

    def cancel_requested(self, run: str) -> bool:
        return self.settings_of(run) is None and self.home.cancel_requested(run)


class _RemoteMailbox:
    """Orders go into the store; the workflow gets a notice of each, without its words."""

    def __init__(self, run: str, settings: TemporalSettings, store: BlobStore, state: Replay) -> None:
        self._run = run
        self._settings = settings
        self._state = state
        self._mailbox = BlobMailbox(store, run, RUN)

    def send(self, order: Order) -> None:
        from chargehand.runs.temporal.run_workflow import OrderNotice
        from chargehand.runs.temporal.take_orders import segment_for

        self._mailbox.send(order)
        run_beside(_notify(self._settings, self._run, OrderNotice(order.id, segment_for(order, self._state))))

    def pending(self) -> list[Order | UnreadableOrder]:
        return self._mailbox.pending()

    def remove(self, id: str) -> None:
        """The step that takes an order removes it."""


def _status(state: Replay) -> RunStatus:
    if state.report is not None:
        return state.status if state.status in FINISHED else "cancelled"  # type: ignore[return-value] # pyright: ignore[reportReturnType]
    if state.paused:
        return "paused"
    return "waiting" if state.open_questions() else "running"


async def _cancel(settings: TemporalSettings, run: str) -> None:
    client = await connect(settings)
    await client.get_workflow_handle(run).cancel()


async def is_running(settings: TemporalSettings, run: str) -> bool:
    """Whether the server has a workflow of the run that has not ended."""
    from temporalio.client import WorkflowExecutionStatus
    from temporalio.service import RPCError, RPCStatusCode

    client = await connect(settings)
    try:
        described = await client.get_workflow_handle(run).describe()
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            return False  # the server has forgotten it: the store has not
        raise UsageError(f"The Temporal server at {settings.address} failed: {error.message}.") from None
    return described.status == WorkflowExecutionStatus.RUNNING


async def _notify(settings: TemporalSettings, run: str, notice: object) -> None:
    """Have the workflow take an order. One that has ended takes none: the order waits for the next resume."""
    from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
    from temporalio.service import RPCError, RPCStatusCode

    client = await connect(settings)
    try:
        async with asyncio.timeout(_NOTICE_S):
            handle: Any = client.get_workflow_handle(run)
            await handle.execute_update("order", notice)
    except WorkflowUpdateFailedError:
        return
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise UsageError(f"The order to {run} was not taken: {error.message}.") from None
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
        raise UsageError(
            f"No worker has taken the order to {run} yet: is one running? It is taken when one is. "
            f"See: chargehand show {run}"
        ) from None


def run_beside(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that needs a loop, from code that may or may not be in one."""
    result: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 -- raised where it was asked for
            failed.append(error)

    thread = threading.Thread(target=run, name="temporal")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]
