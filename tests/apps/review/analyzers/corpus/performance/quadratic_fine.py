"""Sets, queues and small lists."""

import re
from collections import deque

NUMBER = re.compile(r"\d+-\d+")


def unique(values: list[str]) -> list[str]:
    seen: set[str] = set()
    for value in values:
        if value not in seen:
            seen.add(value)
    return list(dict.fromkeys(values))


def drain(values: list[int]) -> int:
    queue = deque(values)
    total = 0
    while queue:
        total += queue.popleft()
    return total


def vowels(text: str) -> int:
    wanted = ["a", "e", "i", "o", "u"]
    count = 0
    for letter in text:
        if letter in wanted:
            count += 1
    return count


def title(words: list[str]) -> str:
    text = ""
    for word in words[:2]:
        text += word
    return text


def squares(values: list[int]) -> list[int]:
    found = []
    for value in values:
        if value > 2:
            found.append(value * value)
    return found


def completed(rows: list[list[str]]) -> list[list[str]]:
    found = []
    for row in rows:
        names = list(row)
        if "id" not in names:
            names.append("id")
        found.append(names)
    return found
