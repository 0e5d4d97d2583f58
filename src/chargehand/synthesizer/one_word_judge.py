"""Pairs of statements -> which of them cannot both be true, by a small model that is asked for one word.

`engine/one_word_question.py` explains how the probability of the word is used.
A model that cannot judge is reported.
"""

from __future__ import annotations

from typing import Final

from chargehand.engine.one_word_question import OneWordJudge, OneWordQuestion
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.outcome import Usage

# Measured as it is.
RULES: Final = (
    "If the first sentence is true, what about the second? Answer with one word: false (it cannot be true as well) or "
    "possible (it can be true as well, for it is about another thing, time or person, or it adds something)."
)

# First, second, and whether they contradict each other: shown as examples, from fields of their own.
EXAMPLES: Final = (
    ("The museum closes at six.", "The museum is open until nine in the evening.", True),
    ("The bridge was built in 1931.", "The bridge was repainted in 1988.", False),
    ("Nobody was hurt in the fire.", "Two people were injured by the fire.", True),
    ("The north car park is free.", "The south car park costs 2 euros an hour.", False),
    ("The plant flowers only in spring.", "The plant is in flower all through autumn.", True),
    ("Anna speaks Polish.", "Anna's brother does not speak Polish.", False),
)
# The same, to measure the model on.
KNOWN: Final = (
    ("The lift is out of order.", "You can take the lift to the fifth floor.", True),
    ("The lift is out of order.", "The stairs were repaired last week.", False),
    ("Only members may read the minutes of the meeting.", "The minutes of the meeting are public.", True),
    ("The day shift begins at six.", "The night shift begins at ten.", False),
    ("The engine runs on diesel.", "The engine needs petrol.", True),
    ("The morning train is always full.", "The evening train is half empty.", False),
    ("The letter arrived on Tuesday.", "The letter was lost in the post.", True),
    ("Pupils under 16 pay nothing.", "Adults pay 4 euros.", False),
)
_LONGEST_STATEMENT: Final = 400


def _case(first: str, second: str) -> str:
    one, other = (" ".join(text.split())[:_LONGEST_STATEMENT] for text in (first, second))
    return f"First: {one}\nSecond: {other}"


QUESTION: Final = OneWordQuestion(
    RULES,
    ("false", "possible"),
    tuple((_case(first, second), contradict) for first, second, contradict in EXAMPLES),
    tuple((_case(first, second), contradict) for first, second, contradict in KNOWN),
)


class PairJudge:
    """One model, measured once, on pairs in both orders."""

    def __init__(self, engine: Engine, model: SupervisorModel, key: str, used: list[Usage]) -> None:
        self._judge = OneWordJudge(QUESTION, engine, model, "judge", key, used)

    async def measure(self) -> float | None:
        """The odds from which a pair counts as a contradiction; None where the model cannot tell pairs apart."""
        return await self._judge.measure()

    async def odds(self, first: str, second: str, key: str) -> float | None:
        """How much likelier false is than possible, asked in both orders; None without an answer to both."""
        there = await self._judge.odds(_case(first, second), key)
        back = None if there is None else await self._judge.odds(_case(second, first), f"{key}/again")
        return None if there is None or back is None else (there + back) / 2
