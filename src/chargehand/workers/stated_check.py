"""A question and an answer from material -> whether the material states it, by the small model that wrote it.

Small models take the nearest figure for an answer that the material does not have: "A cake costs 30 kronor" from a line
about bread. Given the choice between that answer and "The material does not say" they know better: how much likelier
they find the answer is measured on known cases first.
"""

from __future__ import annotations

from typing import Final

from chargehand.engine.one_word_question import OneWordJudge, OneWordQuestion
from chargehand.engine.port import Engine
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.outcome import Usage
from chargehand.workers.worker_prompt import with_material

# An answer of more sentences is not one answer to one question, and so is a question of more characters.
MOST_SENTENCES: Final = 3
LONGEST_QUESTION: Final = 600

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


# The question, measured as it is.
_LETTERS: Final = ("a", "b")


def ask_to_choose(material: str, question: str, answer: str) -> str:
    """The answer or none, as a choice of two letters."""
    asked = (
        f"Question: {question}\n\nWhich is right?\nA: {' '.join(answer.split())}\nB: The material does not say.\n\n"
        "Answer with one letter: A or B."
    )
    return with_material(material, asked).text


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


async def is_doubtful(
    opening: str,
    material: str,
    question: str,
    answer: str,
    engine: Engine,
    model: SupervisorModel,
    key: str,
    used: list[Usage],
) -> bool:
    """Whether the model finds the answer less likely than the least likely of those that the known material has.

    `opening` and `material` are what the model had before it as it answered: a server that keeps the beginnings of
    prompts reads them once. Calls have keys below `key`; `used` grows with each. A model that cannot tell the known
    cases apart is not asked about this one.
    """
    known = tuple((ask_to_choose(_HOTEL, asked, said), is_stated) for asked, said, is_stated in KNOWN)
    asked = OneWordQuestion(opening, _LETTERS, (), known)
    judge = OneWordJudge(asked, engine, model, "judge", f"{key}/", used)
    if (least := await judge.measure_least()) is None:
        return False
    odds = await judge.odds(ask_to_choose(material, question, answer), key)
    return odds is not None and odds < least
