"""A checked body and its caller -> a run that this server carries out, a review, or a plan alone.

Endpoints, /mcp and /v1 begin runs here, so what a client may ask for is checked in one place.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from chargehand.record.home import new_run_id
from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import storage
from chargehand.runs.supervisor import Supervisor
from chargehand.server.access import Caller
from chargehand.server.checked_input import Input
from chargehand.server.client_runs import check_spending, find_run_of, mark_run
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server
from chargehand.server.started_runs import Begin
from chargehand.server.wanted_runs import KnownKey, Wanted, hash_of
from chargehand.values.plan import Plan

Tokens = Annotated[int, Field(gt=0, le=10**15)]
Amount = Annotated[float, Field(gt=0, le=10**15, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
# A name is one part of a path, without control characters.
_FILE_NAME = re.compile(r"[^/\\\x00-\x1f\x7f\ud800-\udfff]{1,200}")


class MaterialFile(Input):
    """A text that workers may read under this name."""

    name: Name
    content: str


class StartRun(Input):
    """A run to start, as `chargehand run` takes it; `team` and `model` are names that are offered here."""

    request: str = Field(default="", max_length=1_000_000)
    team: Name | None = None
    plan: dict[str, JsonValue] | None = None
    model: Name | None = None
    tokens: Tokens | None = None
    usd: Amount | None = None
    deadline: Amount | None = None
    approve: bool = False
    ask: bool = False
    critic: bool = False
    answer_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    material: list[MaterialFile] = Field(default_factory=list[MaterialFile], max_length=1_000)
    follow_up: Name | None = None


class PlanRequest(Input):
    """A request to plan, as `chargehand plan` takes it."""

    request: str = Field(max_length=1_000_000)
    team: Name | None = None
    model: Name | None = None
    material: list[MaterialFile] = Field(default_factory=list[MaterialFile], max_length=1_000)


class ReviewRequest(Input):
    """A unified diff to review."""

    patch: str = Field(min_length=1)
    model: Name | None = None


# -- beginning ---------------------------------------------------------------------------------------------------------


async def begin_run(server: Server, caller: Caller, body: StartRun, key: str | None = None) -> str:
    """Begin a run and return its id. With a key, the same body begins it only once."""
    if body.follow_up is not None:
        body = body.model_copy(update={"follow_up": await find_run_of(server, caller, body.follow_up)})
    start = body.model_dump(by_alias=True, exclude_unset=True)
    # Two requests with one key: the second waits for the first, and gets its run.
    async with server.key_lock if key is not None else nullcontext():
        if key is not None and (known := await _known_run(server, caller, key, hash_of(start))) is not None:
            return known
        run = new_run_id(time.time())
        wanted = Wanted(run, caller, start | {"material": [file.name for file in body.material]})
        paths = await server.reading.run(_keep_material, server, run, body.material)
        try:
            supervisor = supervisor_of(server, body.team, body.model)
            check_spending(await server.reading.run(supervisor.team_settings), caller, body)
            await server.reading.run(mark_run, server.home, run, caller)
            if key is not None:
                known_key = KnownKey(run, hash_of(start))
                await server.reading.run(server.started.wanted.keep_key, caller, key, known_key)
            begin = start_of(supervisor, body, paths)
            return await server.started.begin(wanted, begin, server.new_record(run))
        except Exception:
            shutil.rmtree(run_folder(server, run), ignore_errors=True)
            raise


def start_of(supervisor: Supervisor, body: StartRun, material: list[Path]) -> Begin:
    """The call that begins the requested run."""
    return partial(
        supervisor.run,
        body.request,
        plan=body.plan,
        material=material,
        tokens=body.tokens,
        usd=body.usd,
        deadline=body.deadline,
        approve=body.approve,
        ask=body.ask,
        critic=body.critic,
        schema=body.answer_schema,
        follow_up=body.follow_up,
    )


async def begin_review(server: Server, caller: Caller, body: ReviewRequest) -> str:
    """Begin a review and return its id. Files that the patch changes are read only if the server has a folder."""
    from chargehand.apps import review

    model = server.offered.model(body.model)
    run = new_run_id(time.time())
    # Without a folder, names in the patch are looked up in an empty one.
    tree = server.tree or Path(tempfile.mkdtemp(prefix="chargehand-review-"))
    begin = partial(review.run, tree, patch=body.patch, model=model, home=server.home.path)
    await server.reading.run(mark_run, server.home, run, caller)
    return await server.started.begin(Wanted(run, caller, None), begin, partial(server.home.create, run))


async def draft_plan_for(server: Server, body: PlanRequest) -> Plan:
    """The plan for a request. Nothing is run."""
    supervisor = supervisor_of(server, body.team, body.model)
    with _temporary_material(body.material) as paths:
        return await supervisor.plan(body.request, material=paths)


def supervisor_of(server: Server, team: str | None, model: str | None) -> Supervisor:
    """The supervisor for a team and a model that the server offers."""
    return server.supervisor.for_team(server.offered.team(team), server.offered.model(model))


async def _known_run(server: Server, caller: Caller, key: str, body: str) -> str | None:
    known = await server.reading.run(server.started.wanted.find_key, caller, key)
    if known is not None and known.body != body:
        raise Refusal(
            422, f"This Idempotency-Key was used with another body, for run {known.run}: use a new key for a new run."
        )
    return None if known is None else known.run


# -- material ----------------------------------------------------------------------------------------------------------


def run_folder(server: Server, run: str) -> Path:
    return server.home.path / "runs" / run


def _keep_material(server: Server, run: str, material: list[MaterialFile]) -> list[Path]:
    """The material as files in the folder of the run, so that a resume finds them and pruning removes them."""
    if not material:
        return []
    folder = run_folder(server, run) / "material"
    private_folder(folder)
    return _write_material(folder, material)


@contextmanager
def _temporary_material(material: list[MaterialFile]) -> Generator[list[Path]]:
    if not material:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="chargehand-plan-") as folder:
        yield _write_material(Path(folder), material)


def _write_material(folder: Path, material: list[MaterialFile]) -> list[Path]:
    names = [file.name for file in material]
    wrong = [name for name in names if name in (".", "..") or not _FILE_NAME.fullmatch(name)]
    wrong += sorted({name for name in names if names.count(name) > 1})
    if wrong:
        raise Refusal(
            422,
            "Material has names that cannot be used: a name is given once, and has no slash or control character.",
            [f"material: {name!r}" for name in wrong],
        )
    paths: list[Path] = []
    for file in material:
        path = folder / file.name
        with storage(path):
            path.touch(mode=0o600)
            path.write_text(file.content, encoding="utf-8", errors="replace")
        paths.append(path)
    return paths
