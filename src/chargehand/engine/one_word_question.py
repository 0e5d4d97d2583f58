"""A question with two possible words for an answer -> how much likelier a small model finds the first of them.

A model of one or two billion parameters gives nearly every case the same word, whatever it is asked. The probability of
the word still separates cases, so the probability is read. The model is measured first on cases with a known answer:
the odds that separate these cases decide the others. A model that cannot tell even these apart, or a server that does
not say how likely a word was, decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from chargehand.engine.port import Engine
from chargehand.engine.run_parallel import run_parallel
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.effect import usage_of
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.message import Message, Reply, system, user
from chargehand.values.outcome import Usage
from chargehand.values.role import Role

# The share of first-word cases that is found must exceed the share of the other known cases by this much.
LEAST_DIFFERENCE: Final = 0.5
# The logarithm of the probability that counts for a word that is not among the likely ones.
_UNLIKELY: Final = -20.0
_FIRST_WORD: Final = lazy_regex(r"[^\W\d_]+")


class OneWordQuestion(NamedTuple):
    """What is asked of every case. `examples` are shown with their answers, `known` are what a model is measured on.

    Each is the text of a case and whether the first word is right. Instructions inside a case can change only the one
    word.
    """

    rules: str
    words: tuple[str, str]
    examples: tuple[tuple[str, bool], ...]
    known: tuple[tuple[str, bool], ...]


class OneWordJudge:
    """One question to one model. `used` grows with each call."""

    def __init__(
        self,
        question: OneWordQuestion,
        engine: Engine,
        model: SupervisorModel,
        role: Role,
        key: str,
        used: list[Usage],
    ) -> None:
        self._question = question
        self._engine = engine
        self._model = model
        self._role: Role = role
        self._key = key
        self._used = used

    async def measure(self) -> float | None:
        """The odds from which the first word counts; None where the model cannot tell the known cases apart."""
        known, odds = self._question.known, dict[int, float]()

        async def one(number: int, case: str) -> None:
            said = await self.odds(case, f"{self._key}known/{number}", keeps=True)
            if said is not None:
                odds[number] = said

        await run_parallel(one(number, case) for number, (case, _) in enumerate(known))
        return separating_odds([(odds[number], known[number][1]) for number in sorted(odds)])

    async def odds(self, case: str, key: str, *, keeps: bool = False) -> float | None:
        """How much likelier the first word is than the second; None without an answer. `keeps`: from run to run."""
        call = self._model.make_word_call(self._role, self._messages(case), keeps=keeps)
        result = await self._engine.perform(f"{key}/1", call)
        self._used.append(usage_of(result, call.model))
        return None if result.reply is None else self._odds_in(result.reply)

    def _messages(self, case: str) -> list[Message]:
        messages = [system(self._question.rules)]
        for example, is_first in self._question.examples:
            word = self._question.words[0 if is_first else 1]
            messages += [user(example), Message(role="assistant", text=word)]
        return [*messages, user(case)]

    def _odds_in(self, reply: Reply) -> float | None:
        """From the probability of each word, or from the word alone where that is unknown; None for any other word."""
        words, likely = self._question.words, dict[str, float]()
        for part, chance in reply.first_words.items():
            # A model may write a word in several parts; the words differ in their first letter.
            begun = part.strip().casefold()
            for word in words if begun else ():
                if word.startswith(begun):
                    likely[word] = max(chance, likely.get(word, _UNLIKELY))
        if likely:
            first, second = (likely.get(word, _UNLIKELY) for word in words)
            return first - second
        said = _FIRST_WORD.search(reply.text.casefold())
        return dict(zip(words, (1.0, -1.0), strict=True)).get(said[0]) if said is not None else None


def separating_odds(known: Sequence[tuple[float, bool]]) -> float | None:
    """The odds that separate cases of the first word best from others; None where none does so well enough."""
    yes, no = ([odds for odds, is_first in known if is_first == each] for each in (True, False))
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
