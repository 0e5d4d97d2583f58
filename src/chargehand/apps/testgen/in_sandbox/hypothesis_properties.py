"""A function becomes properties by hypothesis' ghostwriter, each with the input that breaks it, if there is one."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import re
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, cast

from .argument_values import SUBJECT
from .machine_access import Reached
from .mutants import Mutant, in_place, time_limit
from .notes import Notes, describe_error
from .type_hints import parameter_types

Writer = Callable[..., str]
PROPERTY_EXAMPLES = 150
LEAST_REACHED = 15
SMOKE_EXAMPLES, SMOKE_S, MOST_SMOKED = 50, 3.0, 4


def partner(module: ModuleType, name: str) -> Any:
    """The function that undoes this one, by the ghostwriter's own list of pairs such as encode and decode."""
    from hypothesis.extra import ghostwriter

    for pattern, template in ghostwriter.ROUNDTRIP_PAIRS:
        if match := re.fullmatch(pattern, name):
            try:
                other = getattr(module, template.format(*match.groups()), None)
            except IndexError:
                continue
            if inspect.isfunction(other) and other.__name__ != name:
                return other
    return None


def try_properties(
    job: dict[str, Any], function: Any, module: ModuleType, notes: Notes, reached: Reached, left: list[Mutant]
) -> None:
    """Slow modules are imported only when they are needed. `left` are mutants that no call detected."""
    if not inspect.signature(function).parameters:
        return
    from hypothesis.extra import ghostwriter

    meant = tuple(filter(None, (exception(name, module) for name in job["raises"])))
    writers: dict[str, Writer] = {"crash": partial(cast("Writer", ghostwriter.fuzz), function)}  # pyright: ignore[reportUnknownMemberType]
    if job["kind"] == "function" and (other := partner(module, job["name"])) is not None:
        writers["roundtrip"] = partial(cast("Writer", ghostwriter.roundtrip), function, other)  # pyright: ignore[reportUnknownMemberType]
    if job["kind"] == "function" and takes_what_it_gives(function):
        writers["idempotent"] = partial(cast("Writer", ghostwriter.idempotent), function)  # pyright: ignore[reportUnknownMemberType]
    for kind, write in writers.items():
        # ValueError, with which Python refuses a wrong value, is accepted only if the function raises it.
        for caught in (meant, (*meant, ValueError)):
            try:
                code = write(except_=tuple(dict.fromkeys(caught)))
            except Exception as error:  # noqa: BLE001 -- noted
                notes.add(no_property=describe_error(error))
                break
            # An intended error is a valid result, not an input to reject.
            code = code.replace("reject()", "return").replace("given, reject, ", "given, ")
            code = by_subject(code, module)
            if "st.nothing()" in code:
                notes.add(no_property="no type hints to make inputs from")
                break
            error = try_property(kind, code, job, function, notes, reached)
            if kind == "crash" and error is None and left:
                notes_of_smoke(code, job, module, notes, left)
            if not isinstance(error, ValueError):
                break


def takes_what_it_gives(function: Any) -> bool:
    """Whether its result has the type of its only argument, such as a text from a text."""
    types = parameter_types(function, function.__module__)
    needed = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    return len(needed) == 1 and types.get("return") is not None and types.get(needed[0].name) == types["return"]


def notes_of_smoke(code: str, job: dict[str, Any], module: ModuleType, notes: Notes, left: list[Mutant]) -> None:
    """Record if "it raises nothing else" detects a mutant that no call detects: only then it is worth a test."""
    for mutant in left[:MOST_SMOKED]:
        try:
            with in_place(module, job["name"], mutant), time_limit(SMOKE_S):
                run_property(code, SMOKE_EXAMPLES)
        except BaseException:  # noqa: BLE001 -- it told the mutant, by whatever error
            notes.add(smoke=mutant.what)
            return


def by_subject(code: str, module: ModuleType) -> str:
    """The ghostwriter's text with all of the module by SUBJECT, under any imported name, and without annotations.

    A parameter may have the module's own name.
    """
    tree = ast.parse(code)
    moved: dict[str, str] = {}
    for node in [node for node in tree.body if isinstance(node, ast.ImportFrom)]:
        source = sys.modules.get(node.module or "")
        for name in list(node.names):
            if getattr(source, name.name, node) is getattr(module, name.name, None):
                moved[name.asname or name.name] = name.name
                node.names.remove(name)
        if not node.names:
            tree.body.remove(node)

    class Renamed(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), moved[node.id], node.ctx) if node.id in moved else node

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            source = sys.modules.get(ast.unparse(node.value))
            if source is not None and getattr(source, node.attr, node) is getattr(module, node.attr, None):
                return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.attr, node.ctx)
            self.generic_visit(node)
            return node

        def visit_arg(self, node: ast.arg) -> ast.arg:
            node.annotation = None
            return node

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            node.returns = None
            self.generic_visit(node)
            return node

    tree = Renamed().visit(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    kept = [n for n in tree.body if not (isinstance(n, ast.Import) and n.names[0].name.partition(".")[0] not in used)]
    subject = ast.Import([ast.alias(module.__name__, SUBJECT)])
    return ast.unparse(ast.fix_missing_locations(ast.Module([subject, *kept], [])))


def exception(name: str, module: ModuleType) -> type[Exception] | None:
    found = getattr(module, name.rpartition(".")[2], None) or getattr(builtins, name.rpartition(".")[2], None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def run_property(code: str, examples: int, reached: Callable[[], None] | None = None) -> None:
    """Run the property. It calls `reached` after its assertion."""
    from hypothesis import HealthCheck, settings

    tree = ast.parse(code)
    if reached is not None:
        test = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
        test.body.append(ast.parse("_reached_()").body[0])
    space: dict[str, Any] = {"__name__": "candidate", "_reached_": reached}
    exec(compile(ast.fix_missing_locations(tree), "<candidate>", "exec"), space)  # noqa: S102 -- inside of the sandbox
    title = next(key for key in space if key.startswith("test_"))
    wanted = settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
    )
    wanted(space[title])()


def try_property(
    kind: str,
    code: str,
    job: dict[str, Any],
    function: Any,
    notes: Notes,
    reached: Reached,
) -> BaseException | None:
    name = job["name"]
    notes.add(trying=f"a {kind} property of {name}")
    came = itertools.count()
    try:
        with reached.listening():
            run_property(code, PROPERTY_EXAMPLES, None if kind == "crash" else lambda: void(next(came)))
    except BaseException as error:  # noqa: BLE001 -- noted: the code may raise anything
        example = shown_call(name, function, "\n".join(getattr(error, "__notes__", [])))
        if example is None or isinstance(error, ValueError | OSError) or kind == "idempotent":
            # The input could not be made or was refused as a wrong value, or a file does not exist.
            notes.add(no_property=describe_error(error))
        elif kind == "crash":
            notes.add(property=kind, failed=describe_error(error), example=f"{SUBJECT}.{example}")
        elif isinstance(error, AssertionError):
            note_round_trip(example, function, sys.modules[job["module"]], name, notes)
        return error
    # A property whose assertion is hardly ever reached asserts nothing.
    if kind != "crash" and next(came) < LEAST_REACHED:
        notes.add(no_property="nearly all inputs are refused before anything is asserted")
    else:
        notes.add(property=kind, code=code)
    return None


def note_round_trip(example: str, function: Any, module: ModuleType, name: str, notes: Notes) -> None:
    """Record a failed round trip, unless only a number was limited to its range."""
    other = partner(module, name)
    node = ast.parse(example, mode="eval").body
    first = next(iter(inspect.signature(function).parameters))
    if not isinstance(node, ast.Call) or not (given := [each.value for each in node.keywords if each.arg == first]):
        return
    call, space = f"{SUBJECT}.{example}", {SUBJECT: module}
    back = f"{SUBJECT}.{other.__name__}({call})"
    try:
        before, after = eval(ast.unparse(given[0]), space), eval(back, space)  # noqa: S307 -- inside of the sandbox
    except Exception as error:  # noqa: BLE001 -- noted
        notes.add(no_property=describe_error(error))
        return
    if before != after and not is_normalised(before, after):
        notes.add(property="roundtrip", failed="AssertionError", example=call, back=back, got=repr(after)[:200])


def is_normalised(before: Any, after: Any) -> bool:
    """Whether the two are equal except for numbers."""
    if isinstance(before, int | float) and isinstance(after, int | float):
        return True
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        pairs = list(zip(cast("list[Any]", before), cast("list[Any]", after), strict=False))
        return len(before) == len(after) and all(one == two or is_normalised(one, two) for one, two in pairs)  # pyright: ignore[reportUnknownArgumentType]
    return False


def void(_value: object) -> None:
    """Ignores a value, for a call that is made for its effect."""


def shown_call(name: str, function: Any, said: str) -> str | None:
    """`f(x=1)` from the output of hypothesis, without the arguments for its partner."""
    if found := re.search(r"\btest_\w+(\(.*^\))", said, re.DOTALL | re.MULTILINE):
        try:
            call = ast.parse(f"f{found[1]}", mode="eval").body
        except SyntaxError:
            return f"{name}{' '.join(found[1].split())}"
        known = inspect.signature(function).parameters
        if isinstance(call, ast.Call):
            given = [f"{each.arg}={ast.unparse(each.value)}" for each in call.keywords if each.arg in known]
            return f"{name}({', '.join(given)})"
    return None
