"""A docstring becomes calls to try, and its promises what came of them."""

from __future__ import annotations

import ast
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .argument_values import SUBJECT
from .notes import Notes

if TYPE_CHECKING:
    from doctest import Example


def calls_in_docstring(function: Any, name: str) -> list[str]:
    """Calls with literal arguments that the docstring shows."""
    found: list[str] = []
    for example in docstring_examples(function):
        try:
            node = ast.parse(example.source.strip(), mode="eval").body
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                for value in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    ast.literal_eval(value)
                found.append(f"{SUBJECT}.{ast.unparse(node)}")
        except (SyntaxError, ValueError):
            continue
    return found


def promises(function: Any, module: ModuleType, notes: Notes) -> None:
    """What the docstring promises, held to what happens."""
    if not (examples := docstring_examples(function)):
        return
    import doctest

    class Runner(doctest.DocTestRunner):
        def report_start(self, out: Any, test: Any, example: Example) -> None:
            notes.add(trying=example.source.strip())

        def report_failure(self, out: Any, test: Any, example: Example, got: str) -> None:
            notes.add(broken_promise=example.source.strip(), want=example.want.strip(), got=got.strip()[:300])

        def report_unexpected_exception(self, out: Any, test: Any, example: Example, exc_info: Any) -> None:
            # Names that only its readers know, and files that only they have, make it no promise to hold the code to.
            if example.want and not issubclass(exc_info[0], NameError | ImportError | OSError):
                got = f"{exc_info[0].__name__}: {exc_info[1]}"[:300]
                notes.add(broken_promise=example.source.strip(), want=example.want.strip(), got=got)

    # After the first failure the others mean little.
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
    parsed = doctest.DocTest(examples, dict(vars(module)), "docstring", None, 0, None)
    Runner(verbose=False, optionflags=flags).run(parsed, out=lambda _: None)


def docstring_examples(function: Any) -> list[Example]:
    """The examples of a docstring; none where they cannot be read."""
    text = inspect.getdoc(function) or ""
    if ">>>" not in text:
        return []
    # Imported only where it is needed: it takes longer than most calls.
    import doctest

    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []
