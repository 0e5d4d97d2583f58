"""Pairs of statements -> which of them cannot both be true, by a small model that is asked for one word.

A model of one or two billion parameters calls nearly every pair false, whatever it is asked. How likely the word was
still tells pairs apart, so that is what is read, and the model is measured first on pairs whose answer is known: what
separates these decides on the others. A model that cannot tell even these apart, or a server that does not say how
likely a word was, judges nothing, and the reader learns that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from chargehand.engine.port import Engine
from chargehand.engine.side_by_side import abreast
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.effect import usage_of
from chargehand.values.message import Message, Reply, system, user
from chargehand.values.outcome import Usage

# Measured as it is. Instructions inside of a sentence can change nothing but the one word.
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
# By how much more of the contradictory than of the other known pairs must be found, as shares.
LEAST_DIFFERENCE: Final = 0.5
_WORDS: Final = ("false", "possible")
# What a word that is not among the likely ones counts as, as the logarithm of its probability.
_UNLIKELY: Final = -20.0
_LONGEST_STATEMENT: Final = 400


class OneWordJudge:
    """One model, measured once. `used` grows with each call."""

    def __init__(self, engine: Engine, model: SupervisorModel, key: str, used: list[Usage]) -> None:
        self._engine = engine
        self._model = model
        self._key = key
        self._used = used

    async def measure(self) -> float | None:
        """The odds from which a pair counts as a contradiction; None where the model cannot tell pairs apart."""
        odds: dict[int, float] = {}

        async def one(number: int, first: str, second: str) -> None:
            said = await self._ask(first, second, f"{self._key}known/{number}")
            if said is not None:
                odds[number] = said

        await abreast(one(number, first, second) for number, (first, second, _) in enumerate(KNOWN))
        return separating_odds([(odds[number], KNOWN[number][2]) for number in sorted(odds)])

    async def odds(self, first: str, second: str, key: str) -> float | None:
        """How much likelier false is than possible, asked in both orders; None without an answer to both."""
        there = await self._ask(first, second, key)
        back = None if there is None else await self._ask(second, first, f"{key}/again")
        return None if there is None or back is None else (there + back) / 2

    async def _ask(self, first: str, second: str, key: str) -> float | None:
        call = self._model.make_word_call("judge", _messages(first, second))
        result = await self._engine.perform(f"{key}/1", call)
        self._used.append(usage_of(result, call.model))
        return None if result.reply is None else _odds(result.reply)


def separating_odds(known: Sequence[tuple[float, bool]]) -> float | None:
    """The odds that separate contradictory pairs best from others; None where none does so well enough."""
    yes, no = ([odds for odds, contradict in known if contradict == each] for each in (True, False))
    if not yes or not no:
        return None
    found = sorted({odds for odds, _ in known})
    best, threshold = 0.0, None
    for below, above in pairwise(found):
        middle = (below + above) / 2
        difference = sum(odds > middle for odds in yes) / len(yes) - sum(odds > middle for odds in no) / len(no)
        if difference > best:
            best, threshold = difference, middle
    return threshold if best >= LEAST_DIFFERENCE else None


def _messages(first: str, second: str) -> list[Message]:
    messages = [system(RULES)]
    for one, other, contradict in EXAMPLES:
        word = _WORDS[0] if contradict else _WORDS[1]
        messages += [user(_question(one, other)), Message(role="assistant", text=word)]
    return [*messages, user(_question(first, second))]


def _question(first: str, second: str) -> str:
    one, other = (" ".join(text.split())[:_LONGEST_STATEMENT] for text in (first, second))
    return f"First: {one}\nSecond: {other}"


def _odds(reply: Reply) -> float | None:
    """From how likely each word was; from the word alone where that is not known, None where it is another one."""
    likely: dict[str, float] = {}
    for word, chance in reply.first_words.items():
        name = word.strip().casefold()
        likely[name] = max(chance, likely.get(name, _UNLIKELY))
    if any(word in likely for word in _WORDS):
        false, possible = (likely.get(word, _UNLIKELY) for word in _WORDS)
        return false - possible
    said = reply.text.strip().casefold()
    return next((odds for word, odds in zip(_WORDS, (1.0, -1.0), strict=True) if said.startswith(word)), None)
