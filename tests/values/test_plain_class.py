"""Classes with fields, made without generated code."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import pytest

from chargehand.values.plain_class import plain_class, with_changes


@plain_class(eq=True)
class Point:
    x: int
    y: int = 0
    marks: list[str] = field(default_factory=list[str])
    most: ClassVar[int] = 3


@plain_class()
class Counted:
    start: int
    now: int = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.start + 1


def test_fields_are_given_by_place_by_name_or_by_default() -> None:
    """A factory makes a value for each instance, and a class variable is not a field."""
    one, other = Point(1, marks=["a"]), Point(x=1)
    assert (one.x, one.y, one.marks, other.marks, one.most) == (1, 0, ["a"], [], 3)
    other.marks.append("b")
    assert Point(1).marks == []


def test_a_wrong_call_names_the_field() -> None:
    """A value that is missing, one that no field takes, and one too many."""
    with pytest.raises(TypeError, match="needs a value for x"):
        Point()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"more than its fields take: z\."):
        Point(1, z=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="more than its fields take: 4"):
        Point(1, 2, [], 4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="more than its fields take: x"):
        Point(1, x=1)  # type: ignore[misc]  # pyright: ignore[reportCallIssue]


def test_equal_fields_make_equal_values_only_where_asked_for() -> None:
    """Such a value has no hash, because its fields can change; all others are compared by identity."""
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1) != 1
    with pytest.raises(TypeError):
        hash(Point(1))
    one = Counted(1)
    assert one == one and one != Counted(1)  # noqa: PLR0124, PT018
    assert {one: 1}[one] == 1


def test_what_is_set_after_the_others_is_not_given() -> None:
    """`__post_init__` runs last; a changed value is a new one."""
    assert Counted(4).now == 5
    assert with_changes(Point(1, 2), y=5) == Point(1, 5)
