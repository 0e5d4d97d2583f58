"""Events as typed values: one class a kind, read through one table, and the same JSON out as in."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.errors import RecordDamaged
from chargehand.events import Event, EventBody, TaskEnded, TaskReady, Unknown, Unreadable, read_body
from chargehand.events.body import BODIES, fields_of, shape_problem
from chargehand.events.kinds import KINDS
from chargehand.record.replay import replay
from tests.events import make_body, make_event


def test_the_union_that_is_matched_has_every_kind() -> None:
    """`match event.body` with `assert_never` is checked for all kinds of the table, and for what cannot be read."""
    assert set(get_args(EventBody)) == {*BODIES.values(), Unknown, Unreadable}


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_is_read_as_the_class_of_its_kind(kind: str) -> None:
    """Its fields are attributes; those it must have are needed, those with a default may be absent."""
    body = make_body(kind)
    assert type(body) is BODIES[kind]
    for name, field in fields_of(BODIES[kind]).items():
        assert (name in vars(body)) is field.required
        assert isinstance(getattr(body, name), field.types)
        if field.required:
            without = {other: value for other, value in vars(body).items() if other != name}
            assert shape_problem(BODIES[kind], without) == f"the field {name} is missing"


@given(
    kind=st.sampled_from([*KINDS, "moon_rose"]),
    data=st.dictionaries(st.sampled_from(["key", "worker", "moon", "within"]), st.integers() | st.text() | st.none()),
)
def test_what_is_read_is_written_as_it_was(kind: str, data: dict[str, Any]) -> None:
    """Field for field and in order, also of kinds and fields that a newer version adds."""
    event = Event("r", 7, 1.5, "t1", 2, read_body(kind, data))
    expected = {"v": 1, "run": "r", "seq": 7, "at": 1.5, "kind": kind, "task": "t1", "attempt": 2, **data}
    assert list(event.to_json().items()) == list(expected.items())


def test_what_is_not_as_the_class_says_is_unreadable() -> None:
    """A reader passes over it; a run does not continue from it, and is told which field it is."""
    event = make_event("task_ended", "t1", 1, seq=3, outcome="done")
    assert isinstance(event.body, Unreadable)
    assert event.kind == "task_ended"
    with pytest.raises(RecordDamaged, match=r"event 3, task_ended, .*the field outcome is not of the type object"):
        replay([event])


def test_a_field_may_have_any_name() -> None:
    """Also the name by which Python's methods call their object."""
    assert vars(read_body("any", {"self": 1})) == {"self": 1}


def test_a_kind_of_a_newer_version_is_passed_over() -> None:
    """It keeps its name and its fields, and is no reason to stop."""
    newer = Event("r", 1, 0.0, None, None, read_body("moon_rose", {"phase": "full"}))
    assert (type(newer.body).__mro__[1], newer.kind, newer.data) == (Unknown, "moon_rose", {"phase": "full"})
    assert replay([newer]).seq == 1


def test_bodies_are_frozen_and_equal_by_value() -> None:
    """Two bodies are equal if they are of one kind and have the same fields."""
    body = TaskReady(worker="w")
    assert body == TaskReady(worker="w")
    assert body != TaskReady(worker="v")
    assert TaskEnded(outcome={}) != read_body("moon_rose", {"outcome": {}})
    with pytest.raises(AttributeError, match="TaskReady is frozen: worker cannot be set"):
        body.worker = "v"  # type: ignore[misc]
