"""Sets of other authors -> cases of the table: 20 questions that a paragraph answers and 20 that it does not, or 20
pairs that contradict each other and 20 that do not, drawn by a seed. The sets are read from a file and not kept here.
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any, TypeVar

EACH = 20
_Case = TypeVar("_Case")


def draw_questions(file: Path, seed: int, folder: Path) -> list[dict[str, Any]]:
    """Cases of `answers` from SQuAD 2.0 (dev-v2.0.json), in turn with an answer and without; paragraphs in `folder`."""
    stated: list[tuple[str, str, str | None]] = []
    not_stated: list[tuple[str, str, str | None]] = []
    for article in json.loads(file.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                texts = sorted({answer["text"] for answer in asked["answers"]}, key=len)
                right = "|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in texts) or None
                (stated if texts else not_stated).append((paragraph["context"], asked["question"].strip(), right))
    (folder / "material").mkdir(parents=True, exist_ok=True)
    cases: list[dict[str, Any]] = []
    for number, (paragraph, ask, right) in enumerate(_draw(stated, not_stated, seed), 1):
        name = f"passage{number}.md"
        (folder / "material" / name).write_text(f"{paragraph}\n", encoding="utf-8")
        cases.append({"file": name, "ask": ask, "right": right})
    return cases


def draw_pairs(file: Path, seed: int) -> list[tuple[str, str, bool]]:
    """Cases of `contradictions` from SICK (SICK_test.txt: tabs between id, sentences, relatedness, judgement)."""
    contradict: list[tuple[str, str, bool]] = []
    others: list[tuple[str, str, bool]] = []
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        _, first, second, _, judgement = line.split("\t")
        is_contradiction = judgement == "CONTRADICTION"
        (contradict if is_contradiction else others).append((f"{first}.", f"{second}.", is_contradiction))
    return _draw(contradict, others, seed)


def _draw(first: list[_Case], second: list[_Case], seed: int) -> list[_Case]:
    """So many of each, in turn: the first cases are half of each kind."""
    chance = random.Random(seed)
    return [case for both in zip(chance.sample(first, EACH), chance.sample(second, EACH), strict=True) for case in both]
