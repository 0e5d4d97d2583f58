"""Prose that others wrote -> how often the check of figures raises a false alarm, and how often it misses a wrong one.

    python -m bench.figures FOLDER...     each folder holds .md and .rst files; the installed packages are read too

Each paragraph with a figure is the result of a task, and reworded by code it is the answer that cites the task. A
rewording keeps what is said, so each figure that is called unsupported is a false alarm. Then one digit of one figure
is altered, in the paragraph as it is, so that an answer without a problem is a miss.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from hashlib import blake2b
from importlib.metadata import distributions
from pathlib import Path

from chargehand.synthesizer.check_citations import provenance_of
from chargehand.values.outcome import Outcome

MOST_OF_A_SOURCE = 500
_NUMBER = r"(?<![\w.,:/#+=\[-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w:/=\]-]|[.,]\d)"
_FIGURE = re.compile(_NUMBER)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BETWEEN = re.compile(r"\n\s*\n|\n\s*(?:[-*+]|\d+[.)])\s")
_NOT_PROSE = re.compile(r"[`|{}<>\\─│]|https?:|::|__|\w\(|\A\s*(?:[#.>@]|\d+(?:\.\d+)*[.)]\s)")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December")  # fmt: skip
_MONTH = "|".join(_MONTHS)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")  # fmt: skip
_SCALES = {"thousand": 3, "million": 6, "billion": 9}
_MEASURE = r"(?=\s?(?:%|percent\b|ms\b|[MGTk]i?B\b|seconds\b|minutes\b|times\b|x\b|million\b|billion\b))"


def _replace(pattern: str, write: Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    found = re.compile(pattern)
    return lambda text: found.sub(write, text)


def _scaled(match: re.Match[str]) -> str:
    whole, _, fraction = match[1].replace(",", "").partition(".")
    digits = _SCALES[match[2]]
    if len(fraction) > digits:
        return match[0]
    return f"{int(whole + fraction.ljust(digits, '0')):,}"


def _day_first(match: re.Match[str]) -> str:
    return f"{int(match[3])} {_MONTHS[int(match[2]) - 1]} {match[1]}"


def _two_digits(match: re.Match[str]) -> str:
    digits = match[0].replace(",", "")
    number = int(digits)
    return f"about {round(number, 2 - len(digits)):,}"


REWORDINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "1,234 as 1234": _replace(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])", lambda m: m[0].replace(",", "")),
    "1,234 as 1 234": _replace(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,.])", lambda m: m[0].replace(",", "\u202f")),
    "1,234 as 1.234": _replace(r"(?<![\w.,])\d{1,3}(?:,\d{3}){2,}(?![\w,.])", lambda m: m[0].replace(",", ".")),
    "12345 as 12,345": _replace(r"(?<![\w.,:/#+=\[-])\d{5,9}(?![\w:/=.,-])", lambda m: f"{int(m[0]):,}"),
    "12% as 12 percent": _replace(r"(?<=\d) ?%", lambda _: " percent"),
    "12 percent as 12%": _replace(r"(?<=\d) (?:percent|per cent)\b", lambda _: "%"),
    "2.5 as 2.50": _replace(rf"(?<![\w.,])\d+\.\d{_MEASURE}", lambda m: f"{m[0]}0"),
    "2.5 as 2,5": _replace(rf"(?<![\w.,])\d+\.\d{{1,2}}{_MEASURE}", lambda m: m[0].replace(".", ",")),
    "$12 as 12 $": _replace(r"([$€£])(\d+(?:,\d{3})*(?:\.\d+)?)(?![\w,.]| [mbt])", lambda m: f"{m[2]} {m[1]}"),
    "$12 as USD 12": _replace(r"\$(?=\d)", lambda _: "USD "),
    "10ms as 10 ms": _replace(r"(?<![\w.,])(\d+(?:\.\d+)?)(ms|s|[kMGT]i?B)\b", lambda m: f"{m[1]} {m[2]}"),
    "10 ms as 10ms": _replace(r"(?<![\w.,])(\d+(?:\.\d+)?) (ms|[kMGT]i?B)\b", lambda m: f"{m[1]}{m[2]}"),
    "5.6 billion as digits": _replace(rf"({_NUMBER}) ({'|'.join(_SCALES)})\b", _scaled),
    "5,000,000 as 5 million": _replace(r"(?<![\w.,])(\d{1,3}),000,000(?![\w,.])", lambda m: f"{m[1]} million"),
    "10k as 10,000": _replace(r"(?<![\w.,])(\d+)k\b", lambda m: f"{m[1]},000"),
    "2024-03-05 in words": _replace(r"(?<![\w-])([12]\d{3})-(0\d|1[012])-([0-3]\d)(?![\w-])", _day_first),
    "5 March 2024 as 2024-03-05": _replace(
        rf"\b({_MONTH}) (\d{{1,2}}),? ([12]\d{{3}})\b",
        lambda m: f"{m[3]}-{_MONTHS.index(m[1]) + 1:02}-{int(m[2]):02}",
    ),
    "three as 3": _replace(rf"(?<![\w-])(?:{'|'.join(_WORDS[2:])})(?![\w-])", lambda m: str(_WORDS.index(m[0]))),
    "15 as fifteen": _replace(r"(?<![\w.,$€£:/#+=\[-])(?:[2-9]|1\d|20)(?= [a-z]{3,})", lambda m: _WORDS[int(m[0])]),
    "4,812 as about 4,800": _replace(r"(?<![\w.,$€£:/#+=\[-])\d{1,3}(?:,\d{3})+(?![\w,.])", _two_digits),
}


def paragraphs(text: str) -> Iterator[str]:
    """Those of prose that state a figure."""
    for part in (" ".join(_LINK.sub(r"\1", each).split()) for each in _BETWEEN.split(text)):
        if 60 <= len(part) <= 1_500 and not _NOT_PROSE.search(part) and _FIGURE.search(part):
            yield part.lstrip("-* ")


def sources(folders: list[str]) -> Iterator[tuple[str, list[str]]]:
    """The paragraphs of each folder, of the descriptions of installed packages, and of their docstrings."""
    for folder in folders:
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        yield Path(folder).name, [text for path in files for text in paragraphs(path.read_text("utf-8", "replace"))]
    installed = sorted(distributions(), key=lambda each: each.metadata["Name"])
    installed = [each for each in installed if each.metadata["Name"] != "chargehand"]
    yield "descriptions", [text for each in installed for text in paragraphs(each.metadata.get_payload() or "")]
    docstrings: list[str] = []
    for each in installed:
        for file in each.files or ():
            if file.suffix == ".py" and len(docstrings) < MOST_OF_A_SOURCE * 4:
                docstrings += _docstrings(Path(str(each.locate_file(file))))
    yield "docstrings", docstrings


def _docstrings(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from paragraphs(ast.get_docstring(node) or "")


def altered(text: str) -> Iterator[tuple[str, str]]:
    """A figure of the text and the text with one digit of it altered, so that the text did not have the new figure."""
    found = list(_FIGURE.finditer(text))
    seed = int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())
    figure = found[seed % len(found)]
    places = [at for at in range(*figure.span()) if text[at].isdigit()]
    at = places[seed // 7 % len(places)]
    known = set(re.findall(r"\d+", text))
    for step in range(1, 10):
        digit = str((int(text[at]) + step + seed % 9) % 10)
        other = text[:at] + digit + text[at + 1 :]
        new = other[figure.start() : figure.end()]
        if digit == text[at] or (digit == "0" and at == figure.start()) or re.fullmatch(r"\d+\.0*", new):
            continue
        if set(re.findall(r"\d+", other)) - known:
            yield new, other
            return


def unsupported(answer: str, result: str) -> int:
    """The figures of the answer that are called unsupported."""
    outcome = Outcome(task="t1", worker="w", status="done", output=result)
    return sum("unsupported_figure" in each for each in provenance_of(f"{answer} [t1]", {"t1": outcome}).problems)


def main(folders: list[str]) -> None:
    answers: Counter[str] = Counter()
    alarms: Counter[str] = Counter()
    altered_figures: Counter[str] = Counter()
    misses: Counter[str] = Counter()
    for source, every in sources(folders):
        texts = sorted(dict.fromkeys(every), key=lambda text: blake2b(text.encode("utf-8", "replace")).digest())
        print(source, len(texts), "paragraphs")
        for text in texts[:MOST_OF_A_SOURCE]:
            for name, reword in REWORDINGS.items():
                if (answer := reword(text)) != text or name == "as it is":
                    answers[name] += 1
                    if unsupported(answer, text):
                        alarms[name] += 1
                        if "-v" in sys.argv:
                            print("ALARM", name, "|", answer)
            for figure, answer in altered(text):
                kind = "0 to 12" if figure.isdigit() and int(figure) <= 12 else "other"
                altered_figures[kind] += 1
                if not unsupported(answer, text):
                    misses[kind] += 1
                    if "-v" in sys.argv:
                        print("MISS", kind, figure, "|", answer)
    for title, found, of in (("false alarms", alarms, answers), ("misses", misses, altered_figures)):
        print(f"\n{title}")
        for name in (*of, "all"):
            count, total = (found.total(), of.total()) if name == "all" else (found[name], of[name])
            print(f"  {name:28} {count:5} of {total:5}  {100 * count / total:5.1f} %")


if __name__ == "__main__":
    main([each for each in sys.argv[1:] if not each.startswith("-")])
