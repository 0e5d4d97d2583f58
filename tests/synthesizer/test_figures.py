"""Which figures a text states, in which normal form, and that no text is too much."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.figures import figures, plain


def values(text: str) -> list[str]:
    return [figure.value for figure in figures(text)]


@pytest.mark.parametrize(
    "text", ["1,234.50", "1 234.5", "1\u202f234.5", "1.234,5", "1234.5", "1'234.50", "0001234.5", "1.2345e3"]
)
def test_one_number_has_one_value(text: str) -> None:
    """However its digits are grouped."""
    assert values(f"It is {text}, so.") == ["1234.5"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.234.567 and 1,234,567 and 12,34,567", ["1234567", "1234567", "1234567"]),
        ("0,5 or 12,5 % or .5", ["0.5", "12.5", "0.5"]),
        ("rows 1,2,3", ["1", "2", "3"]),
        ("$5m, 5 million dollars, USD 5,000,000, US$5M", ["5000000"] * 4),
        ("EUR 3.2bn, 3.2 billion euros, €3.2 billion", ["3200000000"] * 3),
        ("12 %, 12 percent, 12 per cent, 12%", ["12"] * 4),
        ("10-20 ms, from 10 to 20 ms, 10–20 ms", ["10", "20"] * 3),
        ("-5 °C, (−7%), -$4, 3 - 2", ["-5", "-7", "-4", "3", "2"]),
        ("1e6, 1.5e-3", ["1000000", "0.0015"]),
        ("10k rows, 5M users, 32 KB, 5 mg/day, 120 km/h", ["10000", "5000000", "32", "5", "120"]),
        ("120/80 mmHg, 3 of 5, 3rd, 30-day, 3x", ["120", "80", "3", "5", "3", "30", "3"]),
        ("version 2.1.3, 10.0.0.1, 3.10", ["2.1.3", "10.0.0.1", "3.1"]),
        ("0€0", ["0", "0"]),
        ('{"totals": [10, 20], "n": 5}', ["10", "20", "5"]),
        ("2024-03-05, 5 March 2024, 14:30", ["2024", "5", "5", "2024", "14", "30"]),
    ],
)
def test_digits_and_scales(text: str, expected: list[str]) -> None:
    """Separators, signs and scales are read; units are not, and dates and times are their numbers without the month."""
    assert values(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1. First\n2) Second\n  3. Third",
        "## 2.1 Results",
        "> 4. Quoted",
        "As shown [1] and [t3], also Oslo[4].",
        "https://example.org/2024/12?x=3 www.example.org/2024",
        "t3, sha256, x86, 3a4f, a_1",
        "two nodes, twenty-five users, a dozen",
        "",
    ],
)
def test_what_is_not_a_figure(text: str) -> None:
    """Numbering, citations, urls, names and words."""
    assert values(text) == []


def test_a_figure_knows_its_place() -> None:
    """`text` is what stands there."""
    text = "In 2023 it cost 5 million dollars, or -3 %."
    for figure in figures(text):
        assert text[figure.start : figure.end] == figure.text
    assert [figure.text for figure in figures(text)] == ["2023", "5 million", "-3 %"]


@given(st.text(alphabet="0123456789.,-' \u202f_$€%kMbneE:/#[]()vtQTpamMarchonesi\n", max_size=60))
def test_any_text_is_read(text: str) -> None:
    """Never an error; figures come in order and do not overlap."""
    at = 0
    for figure in figures(text):
        assert at <= figure.start < figure.end
        assert text[figure.start : figure.end] == figure.text
        at = figure.end


@given(st.integers(0, 10**9), st.integers(0, 6))
def test_grouping_never_changes_a_value(number: int, digits: int) -> None:
    """Commas, thin spaces and none."""
    text = f"{number:,}" + (f".{'5' * digits}" if digits else "")
    assert values(text) == values(text.replace(",", "")) == [text.replace(",", "")]


@given(st.integers(1, 10**6), st.integers(-8, 8))
def test_moving_the_point_there_and_back(number: int, shift: int) -> None:
    """Is nothing."""
    assert plain(plain(str(number), shift), -shift) == str(number)


def test_a_megabyte_is_read() -> None:
    """A run of digits of any length is one figure."""
    assert len(figures("9" * 1_000_000)) == 1
    assert figures("1 " + "\x00\ud800é" * 300_000)[0].value == "1"


def hostile() -> dict[str, str]:
    size = 40_000
    chance = random.Random(1)
    parts = ["1", "1 111 ", "1,", "1-", "1_", "1.", "a", " ", "\n", " >", "twenty ", " million", "http://", "a [1, ",
             "May ", "$", "-", "#", "12:", "1e1", "é", "\x00", "<a ", "\ud800"]  # fmt: skip
    texts = {part: part * (size // len(part)) for part in parts}
    return texts | {"binary": bytes(chance.randrange(256) for _ in range(size)).decode("latin-1")}


@pytest.mark.slow
@pytest.mark.parametrize("name", hostile())
def test_a_hostile_text_takes_linear_time(name: str) -> None:
    """Twenty times the text takes about twenty times as long: far from four hundred times."""
    text = hostile()[name]

    def seconds(length: int) -> float:
        began = time.process_time()
        figures(text[:length])
        return time.process_time() - began

    def least(length: int) -> float:
        """Without what the collector and a first use of anything add."""
        return min(seconds(length) for _ in range(3))

    assert least(40_000) < 100 * max(least(2_000), 0.001)
