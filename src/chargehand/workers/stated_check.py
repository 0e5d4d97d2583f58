"""A question and an answer from material -> whether the material states it, by the small model that wrote it.

Small models take the nearest figure for an answer that the material does not have: "A cake costs 30 kronor" from a line
about bread. Asked for one word they know better. They are asked two things, each measured on known cases first: whether
the material states an answer to the question at all, and whether it states this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from chargehand.engine.one_word import OneWordJudge, OneWordQuestion
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Usage
from chargehand.workers.worker_prompt import with_material

# An answer of more sentences is not one answer to one question, and so is a question of more characters.
MOST_SENTENCES: Final = 3
LONGEST_QUESTION: Final = 600

# no_answer: nothing in the material answers the question; another: the material does not state this answer.
Doubt: TypeAlias = Literal["no_answer", "another"]

_ONE_WORD: Final = "Answer with one word: yes or no."
_HOTEL: Final = """hotel.md
# Notes on the hotel at the lake
A double room costs 90 euros a night, breakfast included; a cot is free.
Since May Marta Silva has looked after the garden and the pond.
The laundry brings everything in 18 lorries and 5 vans.
The roof was repaired in March; forms of guests are to be handed in by 4 April.
There are 42 rooms on three floors, and the tower is 61 metres tall.
The chapel was painted by Lena Wirth in 1780."""
# What is asked about the hotel, what is answered, and whether the notes state it.
KNOWN: Final = (
    ("What does a room for two cost?", "A room for two costs 90 euros a night.", True),
    ("What does a room for three cost?", "A room for three costs 90 euros a night.", False),
    ("Who is in charge of the garden?", "Marta Silva is in charge of the garden.", True),
    ("Who owns the hotel?", "The hotel is owned by Marta Silva.", False),
    ("By when must the form be returned?", "The form must be returned by 4 April.", True),
    ("How many drivers does the laundry have?", "The laundry has 18 drivers.", False),
    ("How tall is the tower?", "The tower is 61 metres tall.", True),
    ("In which year was the hotel built?", "The hotel was built in 1780.", False),
)


def _whether_answered(material: str, question: str, answer: str) -> str:
    asked = f"Question: {question}\n\nDoes the material state the answer to this question? {_ONE_WORD}"
    return with_material(material, asked).text


def _whether_stated(material: str, question: str, answer: str) -> str:
    asked = (
        f"Question: {question}\nAnswer: {answer}\n\n"
        f"Does the material state exactly this answer to exactly this question? {_ONE_WORD}"
    )
    return with_material(material, asked).text


_CHECKS: Final[tuple[tuple[Doubt, Callable[[str, str, str], str]], ...]] = (
    ("no_answer", _whether_answered),
    ("another", _whether_stated),
)


_BREAK: Final = lazy_regex(r"(?<=[.!?])\s+(?=[^\W_])|\n")
_FIGURE: Final = lazy_regex(r"\d[\d.,:]*")
_SEPARATORS: Final = lazy_regex(r"[.,:]")
# A source in brackets.
_MARK: Final = lazy_regex(r"\[[^\[\]\n]{1,300}\]")
_WORD: Final = lazy_regex(r"[^\W\d_][\w'’-]*")
_SENTENCE_END: Final = lazy_regex(r"[.!?:]\s|\n|[\"“*#|>-]\s*$")


def find_foreign(answer: str, given: str) -> list[str]:
    """The figures and names of an answer that what was given does not have: a small model made them up or computed."""
    answer = _MARK.sub("", answer)
    known = {_SEPARATORS.sub("", figure) for figure in _FIGURE.findall(given)}
    foreign = [each for each in _FIGURE.findall(answer) if _SEPARATORS.sub("", each) not in known]
    words = {word.casefold() for word in _WORD.findall(given)}
    for found in _WORD.finditer(answer):
        before = answer[max(found.start() - 2, 0) : found.start()]
        begins = not answer[: found.start()].strip() or _SENTENCE_END.search(before) is not None
        name = found[0].removesuffix("'s").removesuffix("’s")
        if name[0].isupper() and not begins and len(name) > 1 and name.casefold() not in words:
            foreign.append(name)
    return list(dict.fromkeys(foreign))


def count_sentences(text: str) -> int:
    return sum(1 for part in _BREAK.split(text) if part.strip())


async def find_doubts(
    opening: str,
    material: str,
    question: str,
    answer: str,
    engine: Engine,
    model: SupervisorModel,
    key: str,
    used: list[Usage],
) -> list[Doubt]:
    """Why the answer may not be what the material states; none where nothing speaks against it.

    `opening` and `material` are what the model had before it as it answered: a server that keeps the beginnings of
    prompts reads them once. Calls have keys below `key`; `used` grows with each. What the model cannot tell of the
    known cases it is not asked about this one.
    """
    found: list[Doubt] = []
    for doubt, ask in _CHECKS:
        known = tuple((ask(_HOTEL, asked, said), is_stated) for asked, said, is_stated in KNOWN)
        judge = OneWordJudge(
            OneWordQuestion(opening, ("yes", "no"), (), known), engine, model, "judge", f"{key}/{doubt}/", used
        )
        # The first question tells cases apart well, the second less: it only takes out what is surely wrong.
        least = await (judge.measure() if doubt == "no_answer" else judge.measure_least())
        odds = None if least is None else await judge.odds(ask(material, question, answer), f"{key}/{doubt}")
        if odds is not None and least is not None and odds < least:
            found.append(doubt)
    return found
