"""Text and JSON -> pieces of HTML, each escaped where it is inserted."""

from __future__ import annotations

from html import escape
from typing import Any

from chargehand.text.escaping import dump_json


def inert_json(value: Any) -> str:
    """JSON that can be put inside a script element: nothing in it ends the element or a line of script."""
    text = dump_json(value)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def section(title: str, body: str, kind: str = "") -> str:
    return f'<section class="{kind}"><h2>{escape(title)}</h2>{body}</section>'


def folded_section(title: str, body: str) -> str:
    return f"<section><details><summary><h2>{escape(title)}</h2></summary>{body}</details></section>"


def table(title: str, names: tuple[str, ...], rows: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    caption = f"<caption>{title}</caption>" if title else ""
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def more(number: int, most: int, noun: str) -> str:
    return f'<p class="quiet">The page shows {most:,} of {number:,} {escape(noun)}.</p>' if number > most else ""


def quiet(text: str) -> str:
    return f'<br><span class="quiet">{escape(text)}</span>' if text else ""
