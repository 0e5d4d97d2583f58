"""An engine by the name the settings have for it."""

from __future__ import annotations

import pytest

from chargehand.engine import make_engine
from chargehand.engine.engine_session import EngineInputs, EngineSession
from chargehand.engine.local.engine import LocalEngine
from chargehand.errors import UsageError
from chargehand.models.resolve import Models
from chargehand.record.memory_journal import MemoryJournal
from chargehand.runs.make_steps import RunJob
from chargehand.runs.session import Session
from chargehand.settings import Settings
from chargehand.testing import run_virtual
from chargehand.values.request import Request
from tests.flows import TIERS, clerks, task, tasks
from tests.kernel import FunctionModel, after, result


def inputs() -> EngineInputs:
    return EngineInputs(run="run", journal=MemoryJournal(), models=Models({}, {}, {}))


def test_the_local_engine_is_made_by_its_name() -> None:
    """It is what runs are run on unless the settings say otherwise."""
    assert isinstance(make_engine.make_engine(Settings(home="unused").engine, inputs()), LocalEngine)


def test_a_name_without_an_engine_is_refused_with_those_there_are() -> None:
    """A record made with an engine of another version says which one is missing."""
    with pytest.raises(UsageError, match=r"'lunar'.*local"):
        make_engine.make_engine("lunar", inputs())


def test_a_run_is_run_on_the_engine_its_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another engine is one more entry in the table: nothing else knows which one it is."""
    made: list[str] = []

    def other(given: EngineInputs) -> EngineSession:
        made.append(given.run)
        return make_engine.make_engine("local", given)

    monkeypatch.setattr(make_engine, "ENGINES", {**make_engine.ENGINES, "other": other})
    settings = Settings(home="unused", tiers=TIERS, engine="other")  # type: ignore[arg-type]
    job = RunJob("run", Request(text="The request."), clerks(), settings, tasks(task("a")))
    scripts = dict.fromkeys(("small", "medium", "large", "other"), FunctionModel(after(1, result())))
    report, _ = run_virtual(Session(job, MemoryJournal(), Models({}, {}, scripts)).work())
    assert made == ["run"]
    assert [outcome.status for outcome in report.outcomes] == ["done"]
