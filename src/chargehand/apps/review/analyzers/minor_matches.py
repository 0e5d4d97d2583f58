"""A match of a rule and the code around it -> the highest severity that it can have.

It is `info` if the match is correct, but nobody would act on it. Which matches these are was learnt from changes of
other projects, finding by finding (docs/explanation/review-quality.md). In a review of a change they are not listed. A
call of a shell or of `pickle.loads` whose input comes from a caller that is not known is a warning: whether
the input is the program's own cannot be seen.

Runs in a child process too: nothing here imports more than the standard library.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers.call_names import last_name
from chargehand.apps.review.analyzers.constant_text import enclosing, is_text
from chargehand.apps.review.analyzers.match_confidence import Shapes
from chargehand.apps.review.analyzers.text_parts import parts_of

if TYPE_CHECKING:
    from chargehand.values.outcome import Severity

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Folders outside the program: its developers run them on their own data.
ASIDE = frozenset(
    {".github", "bench", "benchmark", "benchmarks", "ci", "demo", "demos", "doc", "docs", "example", "examples"}
    | {"hack", "sample", "samples", "script", "scripts"}
)
# Methods that change the list, set or table they are called on.
CHANGES = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse"}
    | {"setdefault", "sort", "update"}
)
# Calls whose failure loses data if it is ignored.
WRITES = frozenset(
    {"check_call", "check_output", "commit", "create", "delete", "dump", "execute", "insert", "post", "publish", "put"}
    | {"run", "save", "send", "send_message", "update", "upload", "write"}
)
# Text before a value in SQL. Names of tables and whole clauses come after other text.
VALUE = re.compile(r"(?i)(?:=|<|>|\blike|\bbetween|\bin\s*\(|\bvalues\s*\()\s*'?%?$|'%?$")
OUTSIDE = re.compile(r"(?i)request|respon[sd]|\bresp\b|recv|\bbody\b|redis|payload|socket|upload|\.content\b")
SECRET = re.compile(r"(?i)passw|passphrase|secret|token|credential|\botp|\bsalt|csrf")
# Values that the user of the program chooses.
OWN_SETTINGS = frozenset({"args", "cfg", "cls", "config", "ctx", "options", "opts", "self", "settings"})
SETTING = re.compile(r"(?i)config|settings|cfg|environ")
ALPHABET = re.compile(r"(?i)string\.|char|alphabet|letters|digits|symbols|pool|\"|'")
_RUNS = frozenset(
    {"Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "popen", "run", "system"}
)
_DEPTH = 4


@dataclass(frozen=True)
class RuleMatch:
    """A match of a rule: its lines as text, and the nodes that begin on them."""

    text: str
    shapes: Shapes
    first: int
    nodes: tuple[ast.expr | ast.stmt, ...]

    def around(self, node: ast.AST) -> Function | None:
        """The function a node is in."""
        scope = enclosing(node, self.shapes.parents)
        return scope if isinstance(scope, Function) else None


def highest_severity(code: str, path: str, text: str, shapes: Shapes, first: int, last: int) -> Severity | None:
    """None if it is that of the rule.

    `code` is a code of ruff; tests of bandit have the same numbers with another letter.
    """
    if code.startswith("S") and not ASIDE.isdisjoint(path.lower().split("/")[:-1]):
        return "info"
    judge = _JUDGES.get(code)
    if judge is None:
        return None
    try:
        match = RuleMatch(text, shapes, first, (*shapes.within(first, last), *_outside(shapes, first)))
        if not judge(match):
            return None
        return "warning" if code in _INPUTS and _has_unknown_input(match, _INPUTS[code]) else "info"
    except RecursionError:
        return None  # too deeply nested to judge


def _outside(shapes: Shapes, first: int) -> Iterator[ast.expr | ast.stmt]:
    """The nodes around the first node on a line, up to its statement: a tool may name a line inside a call."""
    node: ast.AST | None = next(iter(shapes.within(first, first)), None)
    while isinstance(node, ast.expr | ast.keyword):
        node = shapes.parents.get(node)
        if isinstance(node, ast.expr) or (isinstance(node, ast.stmt) and not hasattr(node, "body")):
            yield node


# -- mistakes ----------------------------------------------------------------------------------------------------------


def _is_only_read(match: RuleMatch) -> bool:
    """A default list that its function does not change, and that no method of its class changes as an attribute."""
    for node in match.nodes:
        arguments = match.shapes.parents.get(node)
        if isinstance(arguments, ast.arguments) and (name := _parameter(arguments, node)):
            function = match.shapes.parents[arguments]
            owner = match.shapes.parents.get(function)
            if isinstance(function, Function) and _is_changed(
                function, name, owner, is_list=isinstance(node, ast.List)
            ):
                return False
    return True


def _parameter(arguments: ast.arguments, default: ast.AST) -> str | None:
    places = [*arguments.posonlyargs, *arguments.args]
    for arg, value in zip(reversed(places), reversed(arguments.defaults), strict=False):
        if value is default:
            return arg.arg
    for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is default:
            return arg.arg
    return None


def _is_changed(function: Function, name: str, owner: ast.AST | None, *, is_list: bool) -> bool:
    """Whether the function changes it while it is still the default; an empty list has no elements to replace."""
    rebound = min(
        (each.lineno for each in ast.walk(function) if _binds(each, name) and isinstance(each, ast.stmt)),
        default=None,
    )
    for node in ast.walk(function):
        is_element = is_list and isinstance(node, ast.Subscript)
        if not is_element and _changes(node, name) and (rebound is None or getattr(node, "lineno", 0) <= rebound):
            return True
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=attr)], value=ast.Name(id=kept)):
                if kept == name and owner and any(_changes(each, f"self.{attr}") for each in ast.walk(owner)):
                    return True
            case _:
                pass
    return False


def _binds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Name) and each.id == name for each in targets)
        case ast.AnnAssign(target=ast.Name(id=bound)):
            return bound == name
        case _:
            return False


def _changes(node: ast.AST, name: str) -> bool:
    """Whether a node changes the object of this name in place."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)):
            return method in CHANGES and ast.unparse(owner) == name
        case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
            return ast.unparse(owner) == name
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as target):
            return ast.unparse(target) == name
        case _:
            return False


def _is_handled(match: RuleMatch) -> bool:
    """A bare `except` that does something, and does not swallow a cancellation, a failed write or a failed check."""
    for handler, attempt in match.shapes.parents.items():
        if not isinstance(handler, ast.ExceptHandler) or handler.lineno != match.first:
            continue
        if not isinstance(attempt, ast.Try) or any(isinstance(each, ast.Raise) for each in ast.walk(handler)):
            return True
        tried = [node for statement in attempt.body for node in ast.walk(statement)]
        match handler.body:
            case [ast.Return(value=ast.Constant(value=True))]:
                return False
            case [ast.Pass() | ast.Continue()]:
                writes = any(isinstance(node, ast.Call) and last_name(node.func) in WRITES for node in tried)
            case _:
                writes = False
        waits = any(isinstance(node, ast.Await) for node in tried)
        return not (writes or (waits and isinstance(match.around(attempt), ast.AsyncFunctionDef)))
    return True


def _is_decorated(match: RuleMatch) -> bool:
    """A decorated object is used by its decorator, even if its name is bound again later."""
    return any(isinstance(node, Function | ast.ClassDef) and node.decorator_list for node in match.nodes)


def _reads_attribute(match: RuleMatch) -> bool:
    """`thing.value` alone may be a property with a side effect."""
    return any(isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) for node in match.nodes)


def _strips_one(match: RuleMatch) -> bool:
    for node in match.nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="strip" | "lstrip" | "rstrip"), args=[ast.Constant(value=str(cut))]):
                return len(set(cut)) == 1 or not any(each.isalnum() for each in cut)
            case _:
                pass
    return False


def _is_one_of_several(match: RuleMatch) -> bool:
    """`a, b = a, 0`"""
    return any(isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) for node in match.nodes)


def _only_reads_file(match: RuleMatch) -> bool:
    """A file that is read is closed with its last reference; one that is written may lose its end."""
    for node in match.nodes:
        match node:
            case ast.Call(func=ast.Name(id="open"), args=args, keywords=named):
                modes = [*args[1:2], *(each.value for each in named if each.arg == "mode")]
                return not any(isinstance(each, ast.Constant) and set("wax+") & set(str(each.value)) for each in modes)
            case _:
                pass
    return False


# -- security ----------------------------------------------------------------------------------------------------------


def _is_own_code(match: RuleMatch) -> bool:
    """Code that runs once when the program starts, or with its own set of names."""
    for node in match.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in ("eval", "exec"):
            return match.around(node) is None or len(node.args) > 1
    return False


def _is_checked_archive(match: RuleMatch) -> bool:
    """Zip files of Python cannot write outside the folder; for other archives, the members are selected."""
    return "zip" in match.text.lower() or "members" in match.text or "filter" in match.text


def _is_no_secret(match: RuleMatch) -> bool:
    function = next((each for node in match.nodes if (each := match.around(node))), None)
    return not SECRET.search(f"{match.text} {function.name if function else ''}")


def _is_from_inside(match: RuleMatch) -> bool:
    """Data of the program itself: not from a connection, and not from a file that the caller names."""
    if OUTSIDE.search(match.text):
        return False
    function = next((each for node in match.nodes if (each := match.around(node))), None)
    return function is None or not any(_opens_given(node, function) for node in ast.walk(function))


def _opens_given(node: ast.AST, function: Function) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="open"), args=[ast.Name(id=name), *_]):
            return name in {each.arg for each in function.args.args}
        case _:
            return False


def _chooses_given(match: RuleMatch) -> bool:
    """A choice among existing values: no secret is made."""
    for node in match.nodes:
        match node:
            case ast.Call(func=func, args=[many, *_]) if last_name(func) in ("choice", "choices", "sample", "shuffle"):
                return not ALPHABET.search(ast.unparse(many))
            case _:
                pass
    return False


def _is_own_command(match: RuleMatch) -> bool:
    """A shell command without a value from outside its function, or a command that the caller gives as a whole."""
    for node in match.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in _RUNS:
            function = match.around(node)
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg in ("args", "cmd"))]
            values = [value for each in given for value in _values(each, function, _DEPTH)]
            return function is None or not any(_is_given(value, function, _DEPTH) for value in values)
    return False


def _values(node: ast.expr, function: Function | None, depth: int) -> Iterator[ast.expr]:
    """The values inside a text, also if the text is given by name."""
    if is_text(node):
        yield from (part for part in parts_of(node) if not isinstance(part, str))
    elif isinstance(node, ast.Name) and function and depth:
        for value in _assignments_to(node.id, function):
            if is_text(value) or isinstance(value, ast.Name):
                yield from _values(value, function, depth - 1)


def _assignments_to(name: str, function: Function) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=bound)], value=value)
                | ast.AugAssign(target=ast.Name(id=bound), value=value)
            ) if bound == name:
                yield value
            case _:
                pass


def _is_given(node: ast.expr, function: Function, depth: int) -> bool:
    """Whether a value comes from a parameter, or from a loop over something."""
    arguments = function.args
    parameters = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    loops = {
        each.id
        for loop in ast.walk(function)
        if isinstance(loop, ast.For | ast.comprehension)
        for each in ast.walk(loop.target)
        if isinstance(each, ast.Name)
    }
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id not in OWN_SETTINGS:
            if each.id in parameters | loops:
                return True
            if depth and any(_is_given(value, function, depth - 1) for value in _assignments_to(each.id, function)):
                return True
    return False


def _has_unknown_input(match: RuleMatch, calls: frozenset[str]) -> bool:
    """Whether one of the calls gets a value from a caller, or from the person who started the program."""
    for node in match.nodes:
        if isinstance(node, ast.Call) and last_name(node.func) in calls:
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg in ("args", "cmd"))]
            function = match.around(node)
            return any(_is_typed(each) or (function and _is_passed(each, function, match, _DEPTH)) for each in given)
    return False


def _is_typed(node: ast.expr) -> bool:
    """Whether a person wrote it: `sys.argv`, `input()`."""
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="sys"), attr="argv") | ast.Call(func=ast.Name(id="input")):
                return True
            case _:
                pass
    return False


def _is_passed(node: ast.expr, function: Function, match: RuleMatch, depth: int) -> bool:
    """Whether a value is, or is made from, a parameter that callers outside this file choose."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    parameters = {*places, *(each.arg for each in function.args.kwonlyargs)} - OWN_SETTINGS
    for each in ast.walk(node):
        if not isinstance(each, ast.Name) or not depth:
            continue
        if each.id in parameters and not _is_known_to_callers(each.id, places, function, match, depth - 1):
            return True
        for value in _assignments_to(each.id, function):
            if _is_typed(value) or _is_passed(value, function, match, depth - 1):
                return True
    return False


def _is_known_to_callers(name: str, places: list[str], function: Function, match: RuleMatch, depth: int) -> bool:
    """Whether all calls of the function in this file give a text in the code; a private function, a value of the file.

    A function that is not called in this file is called from elsewhere.
    """
    own = places[1:] if places[:1] in (["self"], ["cls"]) else places
    calls = [each for each in match.shapes.parents if isinstance(each, ast.Call) and _calls_own(each, function.name)]
    for call in calls:
        given = [each.value for each in call.keywords if each.arg == name]
        given += [value for place, value in zip(own, call.args, strict=False) if place == name]
        caller = match.around(call)
        for value in given:
            is_own = function.name.startswith("_") and not _is_typed(value)
            is_own = is_own and (caller is None or not _is_passed(value, caller, match, depth))
            if not is_own and not match.shapes.constants.holds(value):
                return False
        if not given:
            return False
    return bool(calls)


def _calls_own(call: ast.Call, name: str) -> bool:
    """Whether it calls a function of this file, or a method of the same object, by this name."""
    match call.func:
        case ast.Name(id=called) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=called):
            return called == name
        case _:
            return False


def _has_no_value(match: RuleMatch) -> bool:
    """SQL built from names and clauses: its values are parameters, numbers or texts in the code."""
    parents = match.shapes.parents
    whole = [
        node for node in match.nodes if isinstance(node, ast.expr) and is_text(node) and not is_text(parents[node])
    ]
    for node in whole:
        before = ""
        for part in parts_of(node):
            if isinstance(part, str):
                before += part
            elif VALUE.search(before) and not (match.shapes.constants.holds(part) or _is_known(part, match)):
                return False
            else:
                before += "0"
    return bool(whole)


def _is_known(node: ast.expr, match: RuleMatch) -> bool:
    """A number by its annotation, or a setting of the program."""
    if SETTING.search(ast.unparse(node).partition(".")[0].partition("[")[0]):
        return True
    function = match.around(node) if isinstance(node, ast.Name) else None
    if function is None:
        return False
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    kinds = [each.annotation for each in given if isinstance(node, ast.Name) and each.arg == node.id]
    return any(isinstance(kind, ast.Name) and kind.id in ("int", "float", "bool") for kind in kinds)


_JUDGES: Mapping[str, Callable[[RuleMatch], bool]] = {
    "B005": _strips_one,
    "B006": _is_only_read,
    "B018": _reads_attribute,
    "E722": _is_handled,
    "F811": _is_decorated,
    "PLE1310": _strips_one,
    "PLW0127": _is_one_of_several,
    "SIM115": _only_reads_file,
    "S102": _is_own_code,
    "S307": _is_own_code,
    "S202": _is_checked_archive,
    "S301": _is_from_inside,
    "S302": _is_from_inside,
    "S303": _is_no_secret,
    "S324": _is_no_secret,
    "S311": _chooses_given,
    **{f"S{number}": _is_from_inside for number in range(313, 320)},
    "S602": _is_own_command,
    "S604": _is_own_command,
    "S605": _is_own_command,
    "S608": _has_no_value,
}
# Rule -> calls for which it matters that their input is not known. Files are nearly always the program's own.
_INPUTS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("S301", "S302"), frozenset({"loads"})),
    **dict.fromkeys(("S602", "S604", "S605"), _RUNS),
}
