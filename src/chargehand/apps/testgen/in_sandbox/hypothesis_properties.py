"""A function becomes properties by hypothesis' ghostwriter, each noted with the input that breaks it, if one does."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, cast

from .argument_values import SUBJECT
from .machine_access import Reached
from .notes import Notes, describe_error

Writer = Callable[..., str]
PROPERTY_EXAMPLES = 150


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


def try_properties(job: dict[str, Any], function: Any, module: ModuleType, notes: Notes, reached: Reached) -> None:
    """All it takes time to import is imported only for what it can be used on."""
    if job["kind"] == "method" or not inspect.signature(function).parameters:
        return
    from hypothesis.extra import ghostwriter

    meant = tuple(filter(None, (exception(name, module) for name in job["raises"])))
    fuzz, roundtrip = cast("Writer", ghostwriter.fuzz), cast("Writer", ghostwriter.roundtrip)  # pyright: ignore[reportUnknownMemberType]
    writers = {"crash": partial(fuzz, function)}
    if job["kind"] == "function" and (other := partner(module, job["name"])) is not None:
        writers["roundtrip"] = partial(roundtrip, function, other)
    for kind, write in writers.items():
        # What Python itself says of a wrong value is let pass only where it is said.
        for caught in (meant, (*meant, ValueError)):
            try:
                code = write(except_=tuple(dict.fromkeys(caught)))
            except Exception as error:  # noqa: BLE001 -- noted
                notes.add(no_property=describe_error(error))
                break
            # What is raised on purpose is a good end, not an input to look past.
            code = code.replace("reject()", "return").replace("given, reject, ", "given, ")
            code = by_subject(code, module.__name__)
            if "st.nothing()" in code:
                notes.add(no_property="no type hints to make inputs from")
                break
            if not isinstance(try_property(kind, code, job["name"], function, notes, reached), ValueError):
                break


def by_subject(code: str, module: str) -> str:
    """The ghostwriter's text with the module imported as SUBJECT: a parameter may have the module's own name."""

    tree = ast.parse(code)
    ours = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == module]
    known = {name.asname or name.name: name.name for node in ours for name in node.names}
    tree.body = [node for node in tree.body if node not in ours]

    class Renamed(ast.NodeTransformer):
        def visit_Import(self, node: ast.Import) -> ast.Import:
            for name in node.names:
                if name.name == module:
                    name.asname = SUBJECT
            return node

        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Attribute(ast.Name(SUBJECT, ast.Load()), known[node.id], node.ctx) if node.id in known else node

        def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
            if ast.unparse(node.value) == module:
                return ast.Attribute(ast.Name(SUBJECT, ast.Load()), node.attr, node.ctx)
            self.generic_visit(node)
            return node

    return ast.unparse(Renamed().visit(tree))


def exception(name: str, module: ModuleType) -> type[Exception] | None:
    found = getattr(module, name.rpartition(".")[2], None) or getattr(builtins, name.rpartition(".")[2], None)
    return found if isinstance(found, type) and issubclass(found, Exception) else None


def try_property(
    kind: str, code: str, name: str, function: Any, notes: Notes, reached: Reached
) -> BaseException | None:
    from hypothesis import HealthCheck, settings

    notes.add(trying=f"a {kind} property of {name}")
    space: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(code, "<candidate>", "exec"), space)  # noqa: S102 -- inside of the sandbox
    title = next(key for key in space if key.startswith("test_"))
    wanted = settings(
        max_examples=PROPERTY_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
    )
    try:
        with reached.listening():
            wanted(space[title])()
    except BaseException as error:  # noqa: BLE001 -- noted: the code may raise anything
        example = shown_call(name, function, "\n".join(getattr(error, "__notes__", [])))
        if example is None or isinstance(error, ValueError | OSError):
            # The input could not even be made, or was refused as Python refuses wrong values; or a file is not there.
            notes.add(no_property=describe_error(error))
        else:
            notes.add(property=kind, code=code, failed=describe_error(error), example=example)
        return error
    notes.add(property=kind, code=code)
    return None


def shown_call(name: str, function: Any, said: str) -> str | None:
    """`f(x=1)` from what hypothesis says of the test, without the arguments that were for its partner."""
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
