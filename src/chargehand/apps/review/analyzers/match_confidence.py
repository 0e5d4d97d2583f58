"""The text and the syntax tree around a match of a rule -> its confidence, if they say more than the rule.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cached_property

from chargehand.apps.review.analyzers import syntax_nodes
from chargehand.apps.review.analyzers.call_names import last_name
from chargehand.apps.review.analyzers.constant_text import Constants, Scope, enclosing, is_text
from chargehand.apps.review.analyzers.source_files import SourceFile

LEAK = 84
# Such matches are almost always wrong.
EXCUSED = 30
# The same name is imported again: correct, but without effect.
IMPORTED_TWICE = 70
# Only in an annotation in quotes: nothing fails, and some libraries have their own language for these texts.
IN_QUOTES = 70
# Made when the module is imported: no request can influence it.
AT_IMPORT = 50

# Defined only in a notebook: code that uses these names checks where it runs.
AMBIENT = frozenset({"get_ipython", "__IPYTHON__"})
PYTHON_2 = frozenset(
    {"basestring", "cmp", "file", "long", "raw_input", "reduce", "reload", "unichr", "unicode", "xrange"}
)
OPENS = frozenset({"open", "TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile"})
# Functions and methods that take a file, read or write it, and leave it open.
USES = frozenset({"load", "safe_load", "full_load", "dump", "safe_dump", "copyfileobj", "print_exc", "join"})
BUILTINS = frozenset(
    {"all", "any", "dict", "frozenset", "list", "max", "min", "next", "print", "set", "sorted", "sum", "tuple"}
)
# Their results keep the file, and cannot close it either.
WRAPS = frozenset({"reader", "writer", "DictReader", "DictWriter", "enumerate", "filter", "islice", "map", "zip"})
ACTS = frozenset({"__call__", "__enter__", "__aenter__", "__get__", "__set_name__"})
# A name used more often is not followed.
MOST_USES = 200
_QUOTED = re.compile(r"`(\w+)`")
_COMPLEXITY = re.compile(r"\((\d+) > \d+\)")
# Prose has these verbs too. SQL has them in capitals, or goes into something named like a query.
_SQL = re.compile(r"SELECT|INSERT|UPDATE|DELETE|WITH\b|execute|cursor|query|sql|\bwhere\b|\bvalues\b")
_SECRET_NAME = re.compile(r"(?i)token|secret|passw|otp\b|nonce|salt|session|api_?key|csrf|verification|reset_?code")


def weight(code: str, message: str, text: str, path: str) -> int | None:
    """The confidence of a match, if its text says more than the rule."""
    match code:
        case "S311" if _SECRET_NAME.search(text):
            return 88
        case "S608" if not _SQL.search(text):
            return 40
        case "S602" | "S605" | "S604" if "seems safe" in message.lower():
            return 30
        case "C901" if (found := _COMPLEXITY.search(message)) and int(found[1]) > 20:
            return 86
        case "T100" if message.startswith("Import"):
            return 30  # an import may only offer a debugger
        case "F401" if path.endswith("__init__.py"):
            return 40
        case "S324" | "S303" if "usedforsecurity=False" in text.replace(" ", ""):
            return 10
        case _:
            return None


class Shapes:
    """One file. Its tree is made for the first match. Without a tree, nothing is known."""

    def __init__(self, source: SourceFile | None) -> None:
        self._source = source
        self._known: dict[tuple[str, int, int], int | None] = {}
        self._wrapped: dict[ast.AST, bool] = {}

    def worth(self, code: str, message: str, first: int, last: int) -> int | None:
        """The confidence of a match on these lines; None keeps that of the rule."""
        place = code, first, last
        try:
            if code == "F821":
                known = AMBIENT | self._probed | self._literals
                name = _QUOTED.search(message)
                if name and name[1] not in known and self.parents and name[1] not in self._names:
                    return IN_QUOTES
                return EXCUSED if name and (name[1] in known or self._is_of_python_2(name[1])) else None
            if place not in self._known:
                self._known[place] = self._worth_at(*place)
            return self._known[place]
        except RecursionError:
            return None  # too deeply nested to judge

    def _worth_at(self, code: str, first: int, last: int) -> int | None:
        match code:
            case "PLE1205" if any(_is_in_braces(node) for node in self.within(first, last)):
                return EXCUSED  # some loggers fill braces
            case "F811" if any(_imports_at(node, first) for node in self.parents):
                return IMPORTED_TWICE
            case "B015" | "B018" if any(self._is_tried(node) or _fails(node) for node in self.within(first, last)):
                return EXCUSED
            case "PLR0124" if any(isinstance(node, ast.Assert) for node in self.within(first, last)):
                return EXCUSED  # the comparison itself is tested
            case "N801" if any(_is_meant_lower(node) for node in self.within(first, last)):
                return EXCUSED
            case "N804" | "N805" if any(self._is_given(node) for node in self.within(first, last)):
                return EXCUSED
            case "SIM115" if any(_opens(node) and self._leaks(node) for node in self.within(first, last)):
                return LEAK
            case "S102" | "S307" if any(_runs_constant(node) for node in self.within(first, last)):
                return EXCUSED
            case "S608" if self._is_constant(first, last):
                return EXCUSED
            case "S608" if not any(self._is_in_function(node) for node in self.within(first, last)):
                return AT_IMPORT
            case "PLW0127" if not any(self._is_in_function(node) for node in self.within(first, last)):
                return EXCUSED  # keeps an imported name that nothing else uses
            case _:
                return None

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        tree = self._source.tree if self._source else None
        return syntax_nodes.parents(tree) if tree else {}

    @cached_property
    def _lines(self) -> dict[int, list[ast.expr | ast.stmt]]:
        """The nodes that begin on each line."""
        found: dict[int, list[ast.expr | ast.stmt]] = {}
        for node in self.parents:
            if isinstance(node, ast.expr | ast.stmt):
                found.setdefault(node.lineno, []).append(node)
        return found

    @cached_property
    def _loads(self) -> dict[str, list[ast.Name]]:
        found: dict[str, list[ast.Name]] = {}
        for node in self.parents:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.setdefault(node.id, []).append(node)
        return found

    @cached_property
    def _names(self) -> frozenset[str]:
        """All names in the code, without those in texts."""
        return frozenset(node.id for node in self.parents if isinstance(node, ast.Name))

    def _is_in_function(self, node: ast.AST) -> bool:
        while (parent := self.parents.get(node)) is not None:
            if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return True
            node = parent
        return False

    @cached_property
    def _shared(self) -> frozenset[str]:
        """Names that are shared beyond the function that binds them."""
        said = (node for node in self.parents if isinstance(node, ast.Global | ast.Nonlocal))
        return frozenset(name for node in said for name in node.names)

    @cached_property
    def constants(self) -> Constants:
        return Constants(self.parents)

    @cached_property
    def _literals(self) -> frozenset[str]:
        """Words in the arguments of any `Literal`, from any module: its texts are not annotations."""
        found = (node for node in self.parents if isinstance(node, ast.Subscript))
        texts = (each for node in found if last_name(node.value) == "Literal" for each in ast.walk(node.slice))
        return frozenset(
            word for each in texts if isinstance(each, ast.Constant) for word in re.findall(r"\w+", str(each.value))
        )

    @cached_property
    def _probed(self) -> frozenset[str]:
        """Names that a `try` looks up and that may be missing."""
        tried = [node for node in self.parents if isinstance(node, ast.Try) and "NameError" in _caught_names(node)]
        looks = [statement for node in tried for statement in node.body if isinstance(statement, ast.Expr | ast.Assign)]
        return frozenset(each.id for look in looks for each in ast.walk(look) if isinstance(each, ast.Name))

    def _is_of_python_2(self, name: str) -> bool:
        """Whether it is a builtin of Python 2, in code that checks the version."""
        text = self._source.text if self._source else ""
        return name in PYTHON_2 and ("version_info" in text or "PY2" in text or "PY3" in text)

    def within(self, first: int, last: int) -> Iterator[ast.expr | ast.stmt]:
        for line in range(first, last + 1):
            yield from self._lines.get(line, ())

    def _is_tried(self, node: ast.AST) -> bool:
        """Whether it is evaluated only to see if it raises."""
        match self.parents[node]:
            case ast.Try(body=body, handlers=[_, *_]):
                return isinstance(node, ast.Expr) and node in body
            case _:
                return False

    def _is_given(self, node: ast.AST) -> bool:
        """Whether a decorator or a metaclass decides the arguments of a function of a class."""
        match node, self.parents.get(node):
            case ast.FunctionDef(decorator_list=[_, *_]), _:
                return True
            case _, ast.ClassDef(bases=bases):
                return any(ast.unparse(base).rpartition(".")[2].lower().endswith(("type", "meta")) for base in bases)
            case _:
                return False

    def _leaks(self, call: ast.AST) -> bool:
        """Whether the file cannot be closed: it is used where it is opened, or by a name with no other use."""
        match parent := self.parents[call]:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                uses = self._loads.get(name, [])
                # At the top level of a module, other modules may use it.
                scope = enclosing(parent, self.parents)
                inside = not isinstance(scope, ast.Module) and name not in self._shared and len(uses) <= MOST_USES
                return inside and all(self._is_left_open(use) for use in uses if self._is_in(use, scope))
            case _:
                return self._is_left_open(call)

    def _is_in(self, node: ast.AST, scope: Scope) -> bool:
        while (node := self.parents.get(node, scope)) is not scope:
            if node not in self.parents:
                return False
        return True

    def _is_left_open(self, node: ast.AST) -> bool:
        """Whether this use of a file leaves it open and does not pass it on."""
        outer = self.parents[node]
        match self.parents[outer] if isinstance(outer, ast.keyword) else outer:
            case ast.Attribute(attr=attr):
                return attr not in ("close", "detach", "__enter__", "__exit__")
            case ast.For(iter=iter) | ast.comprehension(iter=iter):
                return iter is node
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) as call if name in WRAPS:
                if call not in self._wrapped:
                    # A wrapper around itself is not followed.
                    self._wrapped[call] = False
                    self._wrapped[call] = self._leaks(call)
                return self._wrapped[call]
            case ast.Call(func=ast.Name(id=name)):
                return name in BUILTINS
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                # A method of the same object may do anything.
                return name in USES and not (isinstance(owner, ast.Name) and owner.id in ("self", "cls"))
            case _:
                return False

    def _is_constant(self, first: int, last: int) -> bool:
        """Whether every text built on these lines has only parts that are written in the code."""
        found = (node for node in self.within(first, last) if isinstance(node, ast.expr) and is_text(node))
        whole = [node for node in found if not is_text(self.parents[node]) and any(map(_is_words, ast.walk(node)))]
        return bool(whole) and all(map(self.constants.holds, whole))


def _opens(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in OPENS
        case _:
            return False


def _imports_at(node: ast.AST, line: int) -> bool:
    """Whether it is an import, which may span several lines."""
    return isinstance(node, ast.Import | ast.ImportFrom) and node.lineno <= line <= (node.end_lineno or node.lineno)


def _is_in_braces(node: ast.AST) -> bool:
    match node:
        case ast.Call(args=[ast.Constant(value=str(text)), *_]):
            return "{" in text
        case _:
            return False


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_meant_lower(node: ast.AST) -> bool:
    """Whether a class is private or used like a function."""
    return isinstance(node, ast.ClassDef) and (node.name.startswith("_") or _acts(node))


def _acts(node: ast.ClassDef) -> bool:
    """Whether a class is used like a function: as a decorator, a descriptor or in `with`, or a subclass of one."""
    defined = {each.name for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    return not defined.isdisjoint(ACTS) or any(isinstance(base, ast.Name) and base.id.islower() for base in node.bases)


def _runs_constant(node: ast.AST) -> bool:
    """Whether the executed text is a constant in the source."""
    return isinstance(node, ast.Call) and bool(node.args) and isinstance(node.args[0], ast.Constant)


def _fails(node: ast.AST) -> bool:
    """`1 / 0`: an error made on purpose."""
    match node:
        case ast.Expr(value=ast.BinOp(op=ast.Div() | ast.FloorDiv() | ast.Mod(), right=ast.Constant(value=0))):
            return True
        case _:
            return False


def _caught_names(node: ast.Try) -> frozenset[str]:
    """The names of the errors it handles; `*` for all of them."""
    found: set[str] = set()
    for handler in node.handlers:
        match handler.type:
            case None:
                found.add("*")
            case ast.Tuple(elts=elements):
                found |= {ast.unparse(element) for element in elements}
            case single:
                found.add(ast.unparse(single))
    return frozenset(found)
