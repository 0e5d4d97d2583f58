"""A calculator that reads literals."""

import ast


def read(text: str) -> object:
    return ast.literal_eval(text)


class Model:
    def eval(self) -> str:
        return "evaluated"


def evaluate(model: Model) -> str:
    return model.eval()
