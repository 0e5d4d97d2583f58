"""Which statements meet in one question to the judge, and that finding out costs little."""

from __future__ import annotations

import random
import time
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.reconcile import reconcile
from chargehand.synthesizer.statement_groups import MOST_GROUPS, MOST_IN_GROUP, group_statements, most_groups
from chargehand.values.outcome import Claim, Outcome, done
from tests.pace import Timed

WORDS = [
    f"{head}{tail}" for head in ("bal", "cor", "dim", "fen", "gar", "hul") for tail in ("ton", "vik", "mer", "sap")
]


def test_up_to_forty_statements_are_one_group() -> None:
    """All of them, whatever they share; of one task there is nothing to compare."""
    texts = [f"{word} stands alone." for word in WORDS]
    assert group_statements(texts, ["t1", "t2"] * 12) == (tuple(range(24)),)
    assert group_statements(texts, ["t1"] * 24) == ()
    assert group_statements([], []) == ()


def test_statements_that_share_a_rare_word_meet() -> None:
    """Among two hundred about other things; stems, names and numbers count."""
    pairs = [
        ("Deliveries leave from Havnes.", "Nothing is ever sent out of Havnes."),
        ("The bridge closes at night.", "Traffic crosses the bridges around the clock."),
        ("Form 4711 must be signed.", "Nobody signs 4711."),
    ]
    chance = random.Random(3)
    others = [f"The {' '.join(chance.sample(WORDS, 3))} is item {n} of the list." for n in range(200)]
    texts = [text for pair in pairs for text in pair] + others
    tasks = [f"t{n % 25}" for n in range(len(texts))]
    groups = group_statements(texts, tasks)
    assert len(groups) <= len(texts) // 20
    for first in range(0, 2 * len(pairs), 2):
        assert any(first in group and first + 1 in group for group in groups), texts[first]


def test_pairs_that_must_meet_do() -> None:
    """What code has proven to differ is decided in some call."""
    texts = [f"{word} {other} stands alone." for word in WORDS for other in WORDS[:3]]
    tasks = [f"t{n % 12}" for n in range(len(texts))]
    groups = group_statements(texts, tasks, [(0, 71), (5, 40)])
    assert all(any({*pair} <= {*group} for group in groups) for pair in ((0, 71), (5, 40)))


def test_the_number_of_calls_is_bounded() -> None:
    """One up to forty statements, two in a run of ten tasks, one for every twenty statements beyond."""
    assert [most_groups(10, n) for n in (2, 40, 41, 500)] == [1, 1, 2, 2]
    assert [most_groups(500, n) for n in (40, 41, 500, 3_000)] == [1, 2, 25, 150]


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS), st.integers(0, 30)), max_size=150))
def test_no_group_is_too_large_and_no_statement_in_too_many(said: list[tuple[str, str, int]]) -> None:
    """Every statement of a large run is in a group with another task, or in none because its group has one task."""
    texts, tasks = [f"The {one} {other} is shut." for one, other, _ in said], [f"t{task}" for *_, task in said]
    groups = group_statements(texts, tasks)
    assert all(len(group) <= MOST_IN_GROUP and len({tasks[n] for n in group}) > 1 for group in groups)
    assert all(sum(n in group for group in groups) <= MOST_GROUPS for n in range(len(texts)))
    assert len(groups) <= most_groups(len(set(tasks)), len(texts))
    assert groups == group_statements(texts, tasks)


@pytest.mark.slow
def test_five_hundred_outcomes_of_six_claims_take_less_than_a_second() -> None:
    """Reading, merging, proving and grouping together; twice as many take about twice as long."""
    chance = random.Random(1)
    letters = [chr(97 + n) for n in range(15)]
    names = [f"{a}e{b}o{c}" for a in letters for b in letters for c in letters]
    common, rare = names[:200], names[200:]

    def claim() -> Claim:
        words = [chance.choice(common if chance.random() < 0.5 else rare) for _ in range(10)]
        return Claim(statement=f"The {' '.join(words)} holds {chance.randrange(1_000)} units.", confidence=80)

    def outcome(task: str) -> Outcome:
        return done(task, "a", summary="", output=None, claims=[claim() for _ in range(6)])

    outcomes = {f"t{n}": outcome(f"t{n}") for n in range(1_000)}

    def work(number: int) -> tuple[Timed, int, int]:
        with Timed(time.process_time) as took:
            known = reconcile(dict(islice(outcomes.items(), number)), ())
            texts, tasks = zip(*((each.text, each.task) for each in known.statements), strict=True)
            groups = group_statements(texts, tasks)
        return took, len(texts), len(groups)

    took, statements, groups = work(500)
    assert (statements, groups <= 150) == (3_000, True)
    assert took.within(1)
    twice, statements, _ = work(1_000)
    assert statements == 6_000
    assert twice.within(2.5), "near linear"
