"""Numbers."""


def number(text: str) -> int:
    return int(text.strip())


def label(text: str) -> str:
    return text.strip().title()
