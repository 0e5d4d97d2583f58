"""Merging many findings and grouping many statements: time, CPU and peak memory of one kind and number.

kinds: mixed (many places and words; a fifth is said twice, a twentieth with another number), equal (all the same text),
words (all texts from the same words), place (all at the same place); claims are statements, grouped for a judge.
"""

from __future__ import annotations

import random
import sys

from bench.measure import measured
from chargehand.synthesizer.reconcile import reconcile
from chargehand.synthesizer.statement_groups import group_statements
from chargehand.values.outcome import Claim, Finding, Outcome, done

TASKS = 50
_SUBJECTS = (
    "query",
    "loop",
    "cache",
    "lock",
    "route",
    "parser",
    "buffer",
    "index",
    "token",
    "session",
    "header",
    "timer",
)
_FAULTS = ("leaks", "blocks", "overflows", "repeats", "skips", "exposes", "misreads", "drops", "duplicates", "corrupts")
_WHERE = ("upload", "login", "export", "search", "billing", "import", "report", "signup", "backup", "refund")


def finding(kind: str, number: int, chance: random.Random) -> Finding:
    if kind == "equal":
        return Finding(severity="warning", category="leak", message="The cache leaks 20 MB a day.", confidence=70)
    if kind == "words":
        words = chance.sample(_SUBJECTS + _FAULTS + _WHERE, 8)
        return Finding(severity="warning", category="words", message=" ".join(words) + ".", confidence=70)
    what, other = chance.sample(_SUBJECTS, 2)
    said = (
        f"The {what} of module_{number // 5} {chance.choice(_FAULTS)} {chance.randrange(100, 400)} rows "
        f"during {chance.choice(_WHERE)} when the {other} is retried."
    )
    line = 7 if kind == "place" else chance.randrange(1, 2000)
    path = "a.py" if kind == "place" else f"src/part_{number % 200}.py"
    return Finding(severity="warning", category="fault", path=path, line=line, message=said, confidence=70)


def outcomes(kind: str, number: int) -> list[Outcome]:
    """So many findings, dealt to the tasks in turn; of the mixed ones, some are said by another task too."""
    chance = random.Random(number)
    found = [finding(kind, n, chance) for n in range(number)]
    if kind == "mixed":
        for n in range(4, number, 5):
            found[n] = found[n - 1]
        for n in range(8, number, 20):
            found[n] = found[n - 1].model_copy(update={"message": found[n - 1].message.replace(" rows", "5 rows")})
    return [
        done(f"t{task}", f"w{task % 5}", summary="", output=None, findings=found[task::TASKS]) for task in range(TASKS)
    ]


def claims(number: int) -> list[Outcome]:
    """So many claims, six to a task."""
    chance = random.Random(number)
    said = [Claim(statement=finding("mixed", n, chance).message, confidence=70) for n in range(number)]
    return [done(f"t{at // 6}", "w", summary="", output=None, claims=said[at : at + 6]) for at in range(0, number, 6)]


def work(said: list[Outcome]) -> tuple[int, int, int]:
    """The number of findings after merging, of pairs that code proves to differ, and of calls to a judge."""
    known = reconcile({outcome.task: outcome for outcome in said}, ())
    statements = known.statements
    groups = group_statements([each.text for each in statements], [each.task for each in statements])
    return len(known.findings), len(known.proven), len(groups)


def main() -> None:
    kind, number = sys.argv[-2], int(sys.argv[-1])
    said = claims(number) if kind == "claims" else outcomes(kind, number)
    with measured(number):
        merged, proven, groups = work(said)
    print(f"{number} items: {merged} findings after merging, {proven} proven pairs, {groups} calls", file=sys.stderr)


if __name__ == "__main__":
    main()
