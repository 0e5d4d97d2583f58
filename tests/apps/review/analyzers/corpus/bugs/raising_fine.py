"""Errors, raised and handled."""


def must(value: int) -> None:
    if value < 0:
        raise ValueError(f"negative: {value}")


def read(name: str) -> str:
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise RuntimeError(f"{name} cannot be read") from error


def number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
