"""A worker's answer -> whether it is a result or only repeats its instruction, and whether findings were asked for.

Code compares words only: a scorer, a judge or a person decides whether they are true or useful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from chargehand.values.base import JSON
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.plan import Task
from chargehand.workers.worker_answer import Answer

# An echo has at least this share of the words of the instruction, or of the success criterion, and few words that the
# task does not have. One figure of its own makes it a result. If the task is a question, one word of its own is enough:
# a short answer often repeats its question.
COVERED = 0.8
OWN_WORDS = 3
SHORT_CRITERION = 5
# A task or a worker that names the field `findings` asks for them: then an empty list is a result.
_FINDINGS = lazy_regex(r"\bfindings?\b", re.IGNORECASE)
_WORD = lazy_regex(r"\w+")

# English words of a model that refuses its task. A text that only begins with them is longer.
_APOLOGY = lazy_regex(
    r"\W*(?:(?:i['’]?m|i am)?\s*(?:very |so )?sorry|i apologi[sz]e|unfortunately|as an ai\b[\w ]{0,30})[^.!?\n]{0,40}?"
    r"\b(?:i|we)\s+(?:can ?not|can['’]?t|am unable|am not able|are unable|do not have|don['’]?t have)\b",
    re.IGNORECASE,
)
_ABOUT_APOLOGIES = lazy_regex(r"apolog|sorry", re.IGNORECASE)
LONGEST_APOLOGY = 400

ECHO = "it only says the instruction again and holds no result"


APOLOGY = "it is an apology and holds no result"


def is_apology(answer: Answer, task: Task) -> bool:
    """Whether it only says that the model cannot do the task. The task may be to write an apology."""
    text = answer.output
    if not answer.is_text or not isinstance(text, str) or len(text) > LONGEST_APOLOGY:
        return False
    asked = f"{task.instruction} {task.success_criterion}"
    return _APOLOGY.match(text) is not None and _ABOUT_APOLOGIES.search(asked) is None


def asks_for_findings(*texts: str) -> bool:
    return any(_FINDINGS.search(text) for text in texts)


def is_echo(answer: Answer, task: Task) -> bool:
    """Whether it repeats the instruction or the success criterion and adds almost nothing.

    Real results are recognized by their first words.
    """
    instruction, criterion = _words(task.instruction), _words(task.success_criterion)
    given = instruction | criterion
    # A criterion of a few words, such as "a number", may be in any result.
    asked = [words for words, fewest in ((instruction, 1), (criterion, SHORT_CRITERION)) if len(words) >= fewest]
    own, said = set[str](), set[str]()
    enough = 1 if task.instruction.rstrip().endswith("?") else OWN_WORDS
    for text in _texts(answer):
        for found in _WORD.finditer(text):
            word = found[0].casefold()
            (said if word in given else own).add(word)
            if len(own) >= enough or (word not in given and any(map(str.isdigit, word))):
                return False
    return any(len(said & words) >= COVERED * len(words) for words in asked)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _texts(answer: Answer) -> Iterator[str]:
    """The values of the output, without the names of its fields, and what claims and findings say."""
    waiting: list[JSON] = [answer.output]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(cast("dict[str, JSON]", node).values())
        elif isinstance(node, list):
            waiting.extend(cast("list[JSON]", node))
        elif node is not None:
            yield str(node)
    for claim in answer.claims:
        yield claim.statement
    for finding in answer.findings:
        yield f"{finding.message} {finding.suggestion or ''}"
