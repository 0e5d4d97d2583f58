"""A run as it is in the blob store: the request, its material, the results of its steps. No path of a machine.

runs/RUN/start           request, team, settings, plan
runs/RUN/material/HASH   a file that was given
runs/RUN/documents/NAME  what a worker wrote for the person who asked
runs/RUN/steps/KEY       the result of a step, with the outcomes and words it leaves for other steps
runs/RUN/segments/...    the record (engine/temporal/blob_journal.py)
runs/RUN/orders/SEGMENT  orders of people that have no verdict yet
runs/RUN/orders/@hold    an object in it lets steps begin nothing new
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json, to_json

import chargehand
from chargehand.engine.outcomes import KeptOutcomes
from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.engine.temporal.step_order import ORDER_MARK, RUN, JsonObject, read_head
from chargehand.errors import ToolError, UsageError
from chargehand.events import Control
from chargehand.record.mailbox import UnreadableOrder, read_order
from chargehand.record.storage_errors import damage_error
from chargehand.runs.make_steps import RunJob
from chargehand.team import Team
from chargehand.tools.write_document import MAX_DOCUMENTS
from chargehand.values.order import Order
from chargehand.values.outcome import Outcome
from chargehand.values.plan import Task
from chargehand.values.report import Report
from chargehand.values.request import Material, Request
from chargehand.values.step import Head

# A larger file is not stored.
MOST_BYTES = 64_000_000
_PATHS = ("tools_path", "ref")


def team_queue(team: Team, prefix: str = "ch") -> str:
    """The queue of a team as it is: workers with another team, or other code of chargehand, do not poll it."""
    parts = json.dumps(_without_paths(team.to_json()), sort_keys=True, default=str)
    digest = hashlib.sha256(f"{code_digest()}\n{parts}".encode()).hexdigest()[:8]
    return f"{prefix}.{team.name}@{digest}"


@cache
def code_digest() -> str:
    """A hash of all modules of chargehand: a workflow that other code continues may decide differently and fail.

    The version alone would be the same for a checkout before and after a change.
    """
    package, digest = Path(chargehand.__file__).parent, hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        code = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()} {len(code)}\n".encode() + code)
    return digest.hexdigest()


def _without_paths(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_paths(value) for name, value in data.items() if name not in _PATHS}  # pyright: ignore
    return [_without_paths(each) for each in data] if isinstance(data, list) else data  # pyright: ignore


def store_run(store: BlobStore, job: RunJob, queue: str, material_of: str | None = None) -> None:
    """Put what a run is about into the store, before it begins; its material is given, or that of another run."""
    if material_of is not None:
        files = _copy_material(store, material_of, job.run)
    else:
        files = [file for each in job.request.material for file in _store_material(store, job.run, each)]
    material = tuple(Material(name=each.name, path="") for each in job.request.material)
    start = {
        "request": job.request.model_copy(update={"material": material}).to_json(),
        "team": _without_paths(job.team.to_json()),
        "settings": job.settings.model_copy(update={"home": ""}).to_json(),
        "plan": None if job.plan is None else job.plan.to_json(),
        "queue": queue,
        "files": files,
        "warnings": list(job.warnings),
        "rerun_of": None if job.prior is None else job.prior.run,
    }
    store.put(store.path(job.run, "start"), to_json(start))


def read_start(store: BlobStore, run: str) -> JsonObject:
    """What a run is about; UsageError where there is no such run."""
    if (start := find_start(store, run)) is None:
        raise UsageError(f"There is no run {run} in {store.url}.")
    return start


def find_start(store: BlobStore, run: str) -> JsonObject | None:
    """What a run is about; None where there is no such run, or not yet."""
    try:
        return from_json(store.get(store.path(run, "start")))
    except FileNotFoundError:
        return None


def _store_material(store: BlobStore, run: str, material: Material) -> list[list[str]]:
    """[name, path below it, hash] of each file."""
    whole = Path(material.path)
    found = [whole] if whole.is_file() else sorted(path for path in whole.rglob("*") if path.is_file())
    stored: list[list[str]] = []
    for path in found:
        if path.stat().st_size > MOST_BYTES or ".git" in path.parts:
            continue
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        store.create(store.path(run, "material", digest), data)
        stored.append([material.name, "" if path == whole else path.relative_to(whole).as_posix(), digest])
    return stored


def _copy_material(store: BlobStore, earlier: str, run: str) -> list[list[str]]:
    files: list[list[str]] = read_start(store, earlier)["files"]
    for digest in dict.fromkeys(file[2] for file in files):
        store.create(store.path(run, "material", digest), store.get(store.path(earlier, "material", digest)))
    return files


def keep_document(store: BlobStore, run: str, name: str, data: bytes) -> bool:
    """Put a document into the store; whether it replaced one. Its name is in it, as names of objects may be hidden."""
    path, folder = store.path(run, "documents", name), store.path(run, "documents")
    replaced = store.has(path)
    if not replaced and len(store.list(folder)) >= MAX_DOCUMENTS:
        raise ToolError(f"There are {MAX_DOCUMENTS} documents already; write into one of them.", "too_large")
    store.put(path, name.encode() + b"\n" + data)
    return replaced


def read_documents(store: BlobStore, run: str) -> dict[str, bytes]:
    """The documents of a run by name."""
    found: dict[str, bytes] = {}
    for whole in store.get_many(store.list(store.path(run, "documents"))):
        name, _, data = whole.partition(b"\n")
        found[name.decode()] = data
    return found


def fetch_material(store: BlobStore, run: str, start: JsonObject, folder: Path) -> Request:
    """The request with its material as files below a folder of this machine."""
    request = Request.model_validate(start["request"])
    for name, below, digest in start["files"]:
        place = (folder / name / below) if below else folder / name
        if not place.resolve().is_relative_to(folder.resolve()):
            raise damage_error(f"of run {run}", "a name of its material leads out of its folder")
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            place.write_bytes(store.get(store.path(run, "material", digest)))
    material = tuple(Material(name=each.name, path=str(folder / each.name)) for each in request.material)
    return request.model_copy(update={"material": material})


class StoredOutcomes(KeptOutcomes):
    """Results of steps, in memory and in the store: `load` reads what a step needs, `save` writes what it made."""

    def __init__(self, store: BlobStore, run: str) -> None:
        super().__init__()
        self._store = store
        self._run = run
        self._reasons: dict[str, str] | None = None
        # What was loaded is not saved again.
        self._loaded: set[str] = set()
        self.urls: list[str] = []

    def load(self, ends: JsonObject, refs: Iterable[str | None], tasks: Iterable[str | None]) -> None:
        """Outcomes that tasks ended with, outcomes by ref, words of tasks by ref."""
        plain = {task: end for task, end in ends.items() if not isinstance(end, dict)}
        heads = {task: read_head(cast("JsonObject", end)) for task, end in ends.items() if isinstance(end, dict)}
        wanted = [f"{task}/{attempt}" for task, attempt in plain.items()]
        wanted += [ref for ref in refs if ref]
        wanted += [ref for head in heads.values() for ref in (head.ref, head.output_of) if ref]
        self._load_steps([*dict.fromkeys(wanted), *(ref for ref in tasks if ref)])
        for task, head in heads.items():
            self.end(task, head)
        self._loaded |= {*self._kept, *self._tasks}

    def end(self, ref: str, head: Head) -> Outcome:
        return super().end(ref, head.model_copy(update={"why": self.with_reasons(head.why)}))

    def with_reasons(self, words: str) -> str:
        """The text with the reasons of people in place of the keys of their orders."""
        return ORDER_MARK.sub(lambda mark: self._reason(mark[1]), words)

    def _reason(self, key: str) -> str:
        if self._reasons is None:
            events = BlobJournal.read(self._store, self._run, RUN).events()
            controls = [event.body for event in events if isinstance(event.body, Control)]
            self._reasons = {each.key: (each.value or {}).get("text", "") for each in controls}
        return self._reasons.get(key, "") or "no reason given"

    def _load_steps(self, keys: list[str]) -> None:
        paths = [self._store.path(self._run, "steps", key) for key in keys]
        try:
            found = self._store.get_many(paths)
        except FileNotFoundError as error:
            missing = next((path for path in paths if not self._store.has(path)), self._run)
            raise damage_error(missing, "this object is missing") from error
        for data in map(from_json, found):
            for ref, outcome in data["outcomes"].items():
                self._kept[ref] = Outcome.model_validate(outcome)
            for ref, tasks in data["tasks"].items():
                self._tasks[ref] = tuple(Task.model_validate(task) for task in tasks)
            self.urls += data["urls"]

    def save(self, key: str, result: JsonObject, seq: int, at: float, urls: Iterable[str]) -> None:
        """Put the result of a step, with everything it keeps, into the store. With this the step has ended."""
        kept: JsonObject = {
            "result": result,
            "seq": seq,
            "at": at,
            "outcomes": {ref: each.to_json() for ref, each in self._kept.items() if ref not in self._loaded},
            "tasks": {
                ref: [task.to_json() for task in tasks] for ref, tasks in self._tasks.items() if ref not in self._loaded
            },
            "reports": {ref: report.to_json() for ref, report in self._reports.items()},
            "urls": list(urls),
        }
        for ref in kept["tasks"]:
            if ref != key:  # found by its own name as well
                self._store.put(self._store.path(self._run, "steps", ref), to_json(kept, inf_nan_mode="null"))
        self._store.put(self._store.path(self._run, "steps", key), to_json(kept, inf_nan_mode="null"))


def keep_outcome(store: BlobStore, run: str, ref: str, outcome: Outcome) -> None:
    """Keep an outcome that no step has left."""
    kept: JsonObject = {"result": {"turn": 0}, "outcomes": {ref: outcome.to_json()}, "tasks": {}, "urls": []}
    store.put(store.path(run, "steps", ref), to_json(kept, inf_nan_mode="null"))


def read_step(store: BlobStore, run: str, key: str) -> JsonObject | None:
    """What a step has left, once it has ended."""
    try:
        return from_json(store.get(store.path(run, "steps", key)))
    except FileNotFoundError:
        return None


def read_report(store: BlobStore, run: str, ref: str) -> Report:
    step = read_step(store, run, ref)
    if step is None or ref not in step["reports"]:
        raise damage_error(f"of run {run}", f"its report {ref} is missing")
    return Report.model_validate(step["reports"][ref])


class BlobMailbox:
    """The orders to one segment of a run."""

    def __init__(self, store: BlobStore, run: str, segment: str) -> None:
        self._store = store
        self.folder = store.path(run, "orders", segment)

    def send(self, order: Order) -> None:
        self._store.create(f"{self.folder}/{order.id}", order.model_dump_json(exclude_none=True).encode())

    def pending(self) -> list[Order | UnreadableOrder]:
        found: list[Order | UnreadableOrder] = []
        for path in self._store.list(self.folder):
            try:
                found.append(read_order(path.rpartition("/")[2], self._store.get(path)))
            except FileNotFoundError:
                continue
        return found

    def remove(self, id: str) -> None:
        self._store.delete([f"{self.folder}/{id}"])


class FetchedMailbox:
    """The same for a step: `pending` returns the fetched orders, `remove` takes effect later, outside the loop."""

    def __init__(self, mailbox: BlobMailbox) -> None:
        self._mailbox = mailbox
        self._fetched: list[Order | UnreadableOrder] = []
        self._removed: list[str] = []

    async def fetch(self) -> None:
        self._fetched = await asyncio.to_thread(self._exchange)

    async def remove_taken(self) -> None:
        if self._removed:
            await self.fetch()

    def _exchange(self) -> list[Order | UnreadableOrder]:
        removed, self._removed = self._removed, []
        for id in removed:
            self._mailbox.remove(id)
        return self._mailbox.pending()

    def send(self, order: Order) -> None:
        self._mailbox.send(order)

    def pending(self) -> list[Order | UnreadableOrder]:
        return self._fetched

    def remove(self, id: str) -> None:
        self._fetched = [order for order in self._fetched if order.id != id]
        self._removed.append(id)


def hold_path(store: BlobStore, run: str) -> str:
    return store.path(run, "orders", "@hold", "mark")


def hold_steps(store: BlobStore, run: str, *, held: bool) -> None:
    """Let the steps of a run that are under way, on whichever machine, begin nothing new; or begin again."""
    path = hold_path(store, run)
    store.put(path, b"") if held else store.delete([path])
