"""A docstring becomes calls to try, and checks of its promises."""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .argument_values import MODULES, SUBJECT
from .notes import Notes

if TYPE_CHECKING:
    from doctest import Example


LONGEST_CALL = 200
# Errors from names and files that only a reader has: the example is then not a promise of the code.
_READERS = ("NameError", "ImportError", "ModuleNotFoundError", "FileNotFoundError", "SyntaxError")


def calls_in_docstring(function: Any, name: str, module: ModuleType) -> dict[str, str]:
    """Expressions of the docstring that call the function, with the names they use replaced by their values.

    Each has the text that the docstring has for it.
    """
    found: dict[str, str] = {}
    known: dict[str, ast.expr] = {}
    for example in docstring_examples(function):
        try:
            node = ast.parse(example.source.strip()).body[0]
        except (SyntaxError, ValueError, IndexError):
            continue
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = node.value
        if not isinstance(node, ast.Expr):
            continue
        written = _WrittenOut(module, known)
        text = ast.unparse(ast.fix_missing_locations(written.visit(node.value)))
        uses = f"{SUBJECT}.{name}(" in text or (f".{name}(" in text and SUBJECT in text)
        # A comparison or a conversion around the call is not part of the function.
        if uses and not written.unknown and isinstance(node.value, ast.Call) and len(text) <= LONGEST_CALL:
            found.setdefault(text, example.source.strip())
    return found


class _WrittenOut(ast.NodeTransformer):
    """Replaces names of the module by SUBJECT and assigned names by their values; other names are unknown."""

    def __init__(self, module: ModuleType, known: dict[str, ast.expr]) -> None:
        self._module, self._known, self._depth = module, known, 0
        self._own: set[str] = set()
        self.unknown: set[str] = set()

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        self._own |= {each.arg for each in node.args.args}
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """`package.function` is the module's own `function` if it is the same."""
        found: Any = sys.modules.get(ast.unparse(node.value)) if isinstance(node.value, ast.Name) else None
        if found is not None and getattr(found, node.attr, self) is getattr(self._module, node.attr, None):
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.attr, ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._own:
            return node
        if node.id in self._known and self._depth < 5:
            self._depth += 1
            made = self.visit(copy.deepcopy(self._known[node.id]))
            self._depth -= 1
            return made
        if hasattr(self._module, node.id):
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.id, ast.Load())
        if not hasattr(builtins, node.id) and node.id not in MODULES:
            self.unknown.add(node.id)
        return node


def promises(function: Any, module: ModuleType, notes: Notes) -> dict[str, bool]:
    """Compares the promises of the docstring with the results: whether each is kept, by its text.

    Those after a broken one count as broken. Those that are not in the result were not compared.
    """
    if not (examples := docstring_examples(function)):
        return {}
    import doctest

    kept: dict[str, bool] = {}

    def note_broken(example: Example, want: str, got: str) -> None:
        notes.add(broken_promise=example.source.strip(), want=want, got=got)
        kept.update((each.source.strip(), False) for each in examples[examples.index(example) :])

    class Checker(doctest.OutputChecker):
        def check_output(self, want: str, got: str, optionflags: int) -> bool:
            return super().check_output(want, got, optionflags) or _differ_in_quotes(want, got)

    class Runner(doctest.DocTestRunner):
        def report_start(self, out: Any, test: Any, example: Example) -> None:
            notes.add(trying=example.source.strip())

        def report_success(self, out: Any, test: Any, example: Example, got: str) -> None:
            kept[example.source.strip()] = True

        def report_failure(self, out: Any, test: Any, example: Example, got: str) -> None:
            # A statement without output, such as a passed assertion, has nothing to compare.
            if got.strip() and not got.startswith("Traceback"):
                note_broken(example, example.want.strip(), got.strip()[:300])
            elif got.startswith("Traceback"):
                said = got.strip().splitlines()[-1][:300]
                if not said.startswith(_READERS):
                    note_broken(example, example.want.strip().splitlines()[-1], said)

        def report_unexpected_exception(self, out: Any, test: Any, example: Example, exc_info: Any) -> None:
            if example.want and not issubclass(exc_info[0], NameError | ImportError | OSError | SyntaxError):
                note_broken(example, example.want.strip(), f"{exc_info[0].__name__}: {exc_info[1]}"[:300])

    # After the first failure the others mean little.
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST
    # The message of an error and its module may change.
    flags |= doctest.IGNORE_EXCEPTION_DETAIL
    parsed = doctest.DocTest(examples, dict(vars(module)), "docstring", None, 0, None)
    Runner(Checker(), verbose=False, optionflags=flags).run(parsed, out=lambda _: None)
    return kept


def _differ_in_quotes(want: str, got: str) -> bool:
    """Whether only quotes and spaces differ in the text of an object, as in `Point(x='a')` and `Point(x=a)`.

    Such a docstring was written from memory, and the function does what it says.
    """
    plain = [re.sub(r"[\s'\"]", "", text) for text in (want, got)]
    return plain[0] == plain[1] and re.match(r"[A-Za-z_][\w.]*\(|<", plain[1]) is not None


def docstring_examples(function: Any) -> list[Example]:
    """The examples of a docstring; none if they cannot be read."""
    text = inspect.getdoc(function) or ""
    if ">>>" not in text:
        return []
    # Imported only where it is needed: it takes longer than most calls.
    import doctest

    # A fence ends an example, and is not part of its output.
    text = re.sub(r"^[ \t]*(```|~~~).*$", "", text, flags=re.MULTILINE)
    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []
