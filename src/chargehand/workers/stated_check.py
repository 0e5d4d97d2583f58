"""An answer from material -> whether the lines it rests on state it, by the small model that wrote it, in one word.

Small models take the nearest figure for an answer that the material does not have: "A cake costs 30 kronor" from a line
about bread. Code finds the words in that line, so the model is asked, which it does better than to answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from chargehand.engine.one_word import OneWordJudge, OneWordQuestion
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.outcome import Usage

# How sure code is of an answer that its own model does not find in the material. Under 40 tasks would be added for it.
NOT_STATED: Final = 45
# An answer of more statements is not one answer to one question.
MOST_STATEMENTS: Final = 3
_LONGEST: Final = 600

RULES: Final = (
    "Does the passage state this answer to this question? Answer with one word: stated (the passage says exactly this "
    "of exactly what is asked) or missing (it speaks of another thing, or does not say it)."
)


def _case(question: str, passage: str, answer: str) -> str:
    asked, said, given = (" ".join(text.split())[:_LONGEST] for text in (question, passage, answer))
    return f"Passage: {said}\nQuestion: {asked}\nAnswer: {given}"


def _cases(*cases: tuple[str, str, str, bool]) -> tuple[tuple[str, bool], ...]:
    return tuple((_case(question, passage, answer), is_stated) for question, passage, answer, is_stated in cases)


QUESTION: Final = OneWordQuestion(
    RULES,
    ("stated", "missing"),
    _cases(
        (
            "How tall is the tower?",
            "The tower was finished in 1904 and is 61 metres tall.",
            "The tower is 61 metres tall.",
            True,
        ),
        (
            "How many people live in the village?",
            "The village has 212 houses and a school.",
            "212 people live in the village.",
            False,
        ),
        ("Who painted the altar?", "The altar was painted by Lena Wirth in 1780.", "Lena Wirth painted it.", True),
        (
            "What does a bicycle cost to rent?",
            "A canoe costs 20 euros a day; the deposit is 50 euros.",
            "A bicycle costs 20 euros a day.",
            False,
        ),
        (
            "When does the library open on Saturdays?",
            "On Saturdays the library is open from ten to two.",
            "It opens at ten.",
            True,
        ),
        (
            "Who leads the choir?",
            "The choir was left 3,000 euros by Jan Maas.",
            "Jan Maas leads the choir.",
            False,
        ),
    ),
    _cases(
        (
            "What does a room for two cost?",
            "A double room is 90 euros a night, breakfast included; a cot is free.",
            "A room for two costs 90 euros a night.",
            True,
        ),
        (
            "What does a room for three cost?",
            "A double room is 90 euros a night, breakfast included; a cot is free.",
            "A room for three costs 90 euros a night.",
            False,
        ),
        (
            "Who is in charge of the garden?",
            "Since May Marta Silva has looked after the garden and the pond.",
            "Marta Silva.",
            True,
        ),
        (
            "Who owns the hotel?",
            "Since May Marta Silva has looked after the garden and the pond.",
            "The owner of the hotel is Marta Silva.",
            False,
        ),
        (
            "How many vehicles carry parcels?",
            "The firm has 18 lorries for pallets and 5 vans for parcels.",
            "The firm has 18 lorries and 5 vans for parcels.",
            True,
        ),
        (
            "How many drivers does the firm have?",
            "The firm has 18 lorries for pallets and 5 vans for parcels.",
            "The firm has 18 drivers.",
            False,
        ),
        (
            "By when must the form be returned?",
            "The roof was repaired in March; forms are to be handed in by 4 April.",
            "The form must be returned by 4 April.",
            True,
        ),
        (
            "When was the house sold?",
            "The roof was repaired in March; forms are to be handed in by 4 April.",
            "The house was sold on 4 April.",
            False,
        ),
    ),
)


async def is_stated(
    question: str,
    answer: str,
    passage: Iterable[str],
    engine: Engine,
    model: SupervisorModel,
    key: str,
    used: list[Usage],
) -> bool | None:
    """None where the model cannot tell, or gives no answer. Calls have keys below `key`; `used` grows with each."""
    judge = OneWordJudge(QUESTION, engine, model, "judge", f"{key}/", used)
    threshold = await judge.measure()
    if threshold is None:
        return None
    odds = await judge.odds(_case(question, " ".join(passage), answer), key)
    return None if odds is None else odds > threshold
