"""Groups hold neighbours, are about equal, and none is more than a worker can hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chargehand.apps.review.groups import group_files

SIZES = st.dictionaries(st.text("abc/", min_size=1, max_size=6), st.integers(0, 500), max_size=40)


@given(SIZES, st.integers(1, 800), st.integers(1, 4))
def test_every_file_is_in_one_group_and_none_is_too_large(files: dict[str, int], largest: int, at_least: int) -> None:
    """All files, in order, once; a group over the limit is a single file."""
    groups = group_files(files, largest, at_least=at_least)
    assert [path for group in groups for path in group] == list(files)
    assert all(group for group in groups)
    assert all(len(group) == 1 or sum(files[path] for path in group) <= largest for group in groups)


def test_work_is_shared_between_cores() -> None:
    """Equal files make equal groups."""
    files = {f"{n}.py": 100 for n in range(40)}
    assert [len(group) for group in group_files(files, 1_000, at_least=2)] == [10, 10, 10, 10]
    assert [len(group) for group in group_files(files, 100_000, at_least=2)] == [20, 20]
    assert len(group_files(files, 100_000)) == 1
