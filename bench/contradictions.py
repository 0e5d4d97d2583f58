"""Labelled pairs of statements among others -> how many of those that contradict each other meet in a call.

    python -m bench.contradictions PAIRS [--others OTHERS] [--statements 200] [--tasks 30]

PAIRS has one JSON object on each line: `first`, `second` and `contradict`. The other statements come from a file of
the same form. Each side of a pair is said by another task, and the order is drawn from a seed. The judge is a script
that names every pair that contradicts and that it sees whole: each must be reported once, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from chargehand.synthesizer.group_contradictions import Pair, Ruling, Rulings, disagreements
from chargehand.synthesizer.statement_groups import group_statements
from chargehand.synthesizer.statements import Statement, read_statements
from chargehand.values.outcome import Claim, done

OTHERS = Path(__file__).parent.parent / "tests" / "synthesizer" / "labelled" / "contradictions.jsonl"
SEEDS = 5


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def said(pairs: list[dict[str, Any]], others: list[str], tasks: int, seed: int) -> tuple[Statement, ...]:
    """All statements as outcomes state them: claims of tasks in the order of their ids."""
    chance = random.Random(seed)
    of_task: list[list[str]] = [[] for _ in range(tasks)]
    for pair in pairs:
        one, other = chance.sample(range(tasks), 2)
        of_task[one].append(pair["first"])
        of_task[other].append(pair["second"])
    for text in others:
        chance.choice(of_task).append(text)
    for texts in of_task:
        chance.shuffle(texts)
    return read_statements(
        done(f"t{n}", "w", summary="", output=None, claims=[Claim(statement=text) for text in dict.fromkeys(texts)])
        for n, texts in enumerate(of_task)
    )


def measure(pairs: list[dict[str, Any]], statements: tuple[Statement, ...]) -> tuple[int, int, int]:
    """Pairs that met in a call, contradictions that were reported for them, and calls."""
    wanted = [{pair["first"], pair["second"]} for pair in pairs if pair["contradict"]]
    groups = group_statements([each.text for each in statements], [each.task for each in statements])
    rulings: Rulings = {}
    met: set[int] = set()
    for group in groups:
        shown = [statements[place] for place in group]
        for number, texts in enumerate(wanted):
            sides = [each for each in shown if each.text in texts]
            if {each.text for each in sides} == texts:
                met.add(number)
                first, second = sides[0], next(each for each in sides if each.text != sides[0].text)
                rulings.setdefault(Pair(first, second), Ruling("unclear", "They exclude each other."))
    return len(met), len(disagreements(rulings)), len(groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--others", type=Path, default=OTHERS)
    parser.add_argument("--statements", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=30)
    given = parser.parse_args()
    pairs = rows(given.pairs)
    others = [row[side] for row in rows(given.others) for side in ("first", "second") if isinstance(row[side], str)]
    total = sum(pair["contradict"] for pair in pairs)
    print("| seed | statements | calls | contradictory pairs | met in a call | reported |")
    print("|---|---|---|---|---|---|")
    share = 0.0
    for seed in range(SEEDS):
        statements = said(pairs, others[: given.statements], given.tasks, seed)
        met, reported, calls = measure(pairs, statements)
        share += met / total / SEEDS
        print(f"| {seed} | {len(statements)} | {calls} | {total} | {met} | {reported} |")
    print(f"\nShare that met: {share:.2f}")


if __name__ == "__main__":
    main()
