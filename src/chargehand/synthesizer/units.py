"""What may stand before or after a number -> the one name of its unit, and by how many digits it scales."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Final

_SPELLINGS: Final = {
    "%": "% percent pct",
    "pp": "pp",
    "bp": "bp bps",
    "EUR": "EUR € euro euros",
    "USD": "USD $ US$ dollar dollars",
    "GBP": "GBP £",
    "JPY": "JPY ¥ yen",
    "CHF": "CHF francs",
    "INR": "INR ₹ rupees",
    "CAD": "CAD C$",
    "AUD": "AUD A$",
    "SEK": "SEK",
    "NOK": "NOK",
    "DKK": "DKK",
    "PLN": "PLN",
    "CNY": "CNY yuan",
    "ns": "ns nanosecond nanoseconds",
    "us": "us µs μs microsecond microseconds",
    "ms": "ms msec millisecond milliseconds",
    "s": "s sec secs second seconds",
    "min": "min mins minute minutes",
    "h": "h hr hrs hour hours",
    "day": "d day days",
    "week": "week weeks wk wks",
    "month": "month months",
    "year": "year years yr yrs",
    "B": "B byte bytes",
    "kB": "kB KB kilobyte kilobytes",
    "MB": "MB megabyte megabytes",
    "GB": "GB gigabyte gigabytes",
    "TB": "TB terabyte terabytes",
    "KiB": "KiB",
    "MiB": "MiB",
    "GiB": "GiB",
    "mm": "mm millimetre millimetres millimeter millimeters",
    "cm": "cm centimetre centimetres centimeter centimeters",
    "m": "m metre metres meter meters",
    "km": "km kilometre kilometres kilometer kilometers",
    "mi": "mi mile miles",
    "ft": "ft foot feet",
    "inch": "inch inches",
    "ug": "µg μg mcg ug microgram micrograms",
    "mg": "mg milligram milligrams",
    "g": "g gram grams",
    "kg": "kg kilo kilos kilogram kilograms",
    "t": "t tonne tonnes ton tons",
    "lb": "lb lbs",
    "oz": "oz ounce ounces",
    "ml": "ml mL millilitre millilitres milliliter milliliters",
    "l": "l L litre litres liter liters",
    "°C": "°C ℃",
    "°F": "°F",
    "°": "° degree degrees",
    "W": "W watt watts",
    "kW": "kW kilowatt kilowatts",
    "MW": "MW megawatt megawatts",
    "GW": "GW gigawatt gigawatts",
    "kWh": "kWh",
    "MWh": "MWh",
    "GWh": "GWh",
    "Hz": "Hz hertz",
    "kHz": "kHz",
    "MHz": "MHz",
    "GHz": "GHz",
    "mmHg": "mmHg",
    "mmol": "mmol",
    "IU": "IU",
    "bpm": "bpm",
    "x": "x × times",
    "#": "#",
}
# Several words for one unit; read before the single words.
PHRASES: Final = {
    "per cent": "%",
    "percentage point": "pp",
    "percentage points": "pp",
    "basis point": "bp",
    "basis points": "bp",
    "degrees celsius": "°C",
    "degrees fahrenheit": "°F",
    "square metres": "m²",
    "square meters": "m²",
    "square kilometres": "km²",
    "square kilometers": "km²",
}
_UNITS: Final = {spelling: unit for unit, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_MONEY: Final = frozenset({"EUR", "USD", "GBP", "JPY", "CHF", "INR", "CAD", "AUD", "SEK", "NOK", "DKK", "PLN", "CNY"})
# Digits to shift by. The short ones count only where they touch the number, or with money.
SCALE_WORDS: Final = {"hundred": 2, "thousand": 3, "million": 6, "millions": 6, "billion": 9, "trillion": 12}
_SHORT_SCALES: Final = {"k": 3, "K": 3, "M": 6, "mn": 6, "mln": 6, "bn": 9, "Bn": 9, "tn": 12}
_MONEY_SCALES: Final = {**_SHORT_SCALES, "m": 6, "b": 9, "B": 9}


def unit_named(spelling: str) -> str | None:
    """The unit of a spelling: short ones by their exact case, words in any case."""
    unit = _UNITS.get(spelling.replace("° ", "°"))
    if unit is None and len(spelling) > 3:
        unit = _UNITS.get(spelling.lower()) or PHRASES.get(" ".join(spelling.lower().split()))
    return unit


def is_money(unit: str | None) -> bool:
    return unit in _MONEY


def scale_named(word: str, *, touching: bool, money: bool) -> int:
    """By how many digits a word after a number scales it, 0 for a word that does not."""
    if (digits := SCALE_WORDS.get(word.lower(), 0)) and len(word) > 2:
        return digits
    if money:
        return _MONEY_SCALES.get(word, 0)
    return _SHORT_SCALES.get(word, 0) if touching else 0


# Quantities whose units convert into each other: the name of the quantity, and what one unit is in the smallest.
_QUANTITIES: Final = {
    "time": {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "day": 86400 * 10**9,
             "week": 7 * 86400 * 10**9},
    "period": {"month": 1, "year": 12},
    "length": {"mm": 1, "cm": 10, "m": 1000, "km": 10**6},
    "mass": {"ug": 1, "mg": 10**3, "g": 10**6, "kg": 10**9, "t": 10**12},
    "volume": {"ml": 1, "l": 1000},
    "power": {"W": 1, "kW": 1000, "MW": 10**6, "GW": 10**9},
    "energy": {"kWh": 1, "MWh": 1000, "GWh": 10**6},
    "size": {"B": 1, "kB": 1000, "MB": 10**6, "GB": 10**9, "TB": 10**12},
}  # fmt: skip
_MEASURES: Final = {unit: (name, factor) for name, units in _QUANTITIES.items() for unit, factor in units.items()}


def quantity(value: str, unit: str | None) -> tuple[str, str | Decimal]:
    """What is measured and how much of it, so that 45 minutes and 0.75 hours are the same."""
    name, factor = _MEASURES.get(unit or "", (unit or "", 1))
    try:
        return name, Decimal(value) * factor
    except (InvalidOperation, ArithmeticError):
        return name, value  # a version, or out of all bounds
