"""A calculator."""


def calculate(text: str) -> float:
    return eval(text)


def run(script: str) -> None:
    exec(script)
