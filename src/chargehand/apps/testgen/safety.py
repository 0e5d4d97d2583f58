"""A function becomes what it can reach: the machine's files, processes or network, or nothing dangerous.

The search uses names, and follows everything that the function uses in its project. It does not see names made at run
time: the sandbox and `machine_access.py` handle these. It leaves out functions that would have no effect in the
sandbox, act later, or reveal facts about the machine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from chargehand.apps.testgen.dangerous_names import danger_of_call, danger_of_name
from chargehand.apps.testgen.discover import AnyFunction, functions
from chargehand.apps.testgen.expression_classes import Kinds
from chargehand.apps.testgen.names import Exports, dotted_name, imports
from chargehand.apps.testgen.project import Module


@dataclass(frozen=True, slots=True)
class Danger:
    """What is reached, by which name, at which place, and through which functions."""

    what: str
    by: str
    path: str
    line: int
    through: tuple[str, ...] = ()

    def __str__(self) -> str:
        way = f" through {' and '.join(self.through)}" if self.through else ""
        return f"reaches {self.what}: {self.by}{way} ({self.path}:{self.line})"


@dataclass(frozen=True, slots=True)
class _Function:
    module: Module
    owner: str | None
    node: AnyFunction


class Reach:
    """What the functions of a project reach, and which exceptions they raise on purpose."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self._exports = Exports(modules)
        self._functions: dict[str, _Function] = {}
        self._classes: dict[str, list[str]] = {}
        self._imports: dict[str, dict[str, str]] = {}
        # Name of a method -> all methods of the project that have it.
        self._methods: dict[str, list[str]] = {}
        # By name of a function, once it was asked for: most functions are reached from many others.
        self._dangers: dict[str, Danger | None] = {}
        self._mentioned: dict[str, list[str]] = {}
        self._used: dict[str, list[str]] = {}
        for module in modules:
            package = module.path.endswith("__init__.py")
            known = imports([module.tree], module.name, package=package)
            defined = {n.name for n in module.tree.body if isinstance(n, AnyFunction | ast.ClassDef)}
            self._imports[module.name] = {**known, **{name: f"{module.name}.{name}" for name in defined}}
            for name, node in _globals(module.tree):
                self._functions[f"{module.name}.{name}"] = _Function(module, None, node)
            for owner, node in functions(module.tree):
                name = f"{owner.name}.{node.name}" if owner else node.name
                self._functions[f"{module.name}.{name}"] = _Function(module, owner.name if owner else None, node)
                if owner is not None:
                    self._methods.setdefault(node.name, []).append(f"{module.name}.{name}")
            for node in (each for each in module.tree.body if isinstance(each, ast.ClassDef)):
                bases = [dotted_name(base, self._imports[module.name]) for base in node.bases]
                self._classes[f"{module.name}.{node.name}"] = [base for base in bases if base]

    def danger(self, name: str) -> Danger | None:
        """The nearest danger that the function leads to; None if there is none."""
        owner = name.rpartition(".")[0]
        # A method needs an object, which must be made first.
        makers = self._special(owner) if owner in self._classes else []
        waiting: list[tuple[str, tuple[str, ...]]] = [(name, ()), *((maker, (_last(maker),)) for maker in makers)]
        seen = {name, *makers}
        for at, way in waiting:  # grows while it is walked
            if at not in self._functions:
                continue
            if (found := self._own_danger(at)) is not None:
                return replace(found, through=way)
            for used in self._uses(at):
                if used not in seen:
                    seen.add(used)
                    waiting.append((used, (*way, _last(used))))
        return None

    def raises(self, name: str) -> list[str]:
        """Exceptions that the function or what it uses raises by name, or promises to in its docstring."""
        found: dict[str, None] = {}
        waiting, seen = [name], {name}
        for at in waiting:  # grows while it is walked
            if (function := self._functions.get(at)) is None:
                continue
            for node in ast.walk(function.node):
                raised = node.exc if isinstance(node, ast.Raise) else None
                called = raised.func if isinstance(raised, ast.Call) else raised
                if called is not None and (exception := dotted_name(called, self._imports[function.module.name])):
                    found[self._exports.origin(exception)] = None
            new = [used for used in dict.fromkeys(self._mentions(at)) if used not in seen]
            seen.update(new)
            waiting += new
        return list(found)

    def _own_danger(self, name: str) -> Danger | None:
        """The danger in the function itself."""
        if name not in self._dangers:
            self._dangers[name] = self._find_danger(self._functions[name])
        return self._dangers[name]

    def _uses(self, name: str) -> list[str]:
        """Functions of the project that it may use."""
        if name not in self._used:
            self._used[name] = list(dict.fromkeys([*self._mentions(name), *self._maybe_used(self._functions[name])]))
        return self._used[name]

    def _mentions(self, name: str) -> list[str]:
        """Functions of the project that it names."""
        if name not in self._mentioned:
            self._mentioned[name] = self._find_mentions(self._functions[name])
        return self._mentioned[name]

    def _find_danger(self, function: _Function) -> Danger | None:
        known = self._known_names(function)
        kinds, local = Kinds(function.node, known, self._exports), _bound_names(function.node)
        nodes = list(ast.walk(function.node))
        # Only the whole of `os.path.join` counts, not `os`.
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            reached = None
            if isinstance(node, ast.Call) and not self._is_ours(node.func, kinds, function):
                reached = danger_of_call(node, known)
            elif isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
                reached = danger_of_name(node, known, local)
            if reached is not None:
                line = cast("ast.expr", node).lineno
                return Danger(reached[0], reached[1], function.module.path, line)
        return None

    def _is_ours(self, node: ast.expr, kinds: Kinds, function: _Function) -> bool:
        """Whether it is certainly a method of the project. It is followed, whatever its name is."""
        match node:
            case ast.Attribute(value=ast.Name(id=("self" | "cls")), attr=name) if function.owner is not None:
                return self._method(f"{function.module.name}.{function.owner}", name) is not None
            case ast.Attribute(value=value, attr=name):
                return (kind := kinds.of(value)) is not None and self._method(kind, name) is not None
            case _:
                return False

    def _known_names(self, function: _Function) -> Mapping[str, str]:
        module = function.module
        package = module.path.endswith("__init__.py")
        return {**self._imports[module.name], **imports([function.node], module.name, package=package)}

    def _find_mentions(self, function: _Function) -> list[str]:
        """Functions of the project that this one names, directly or by `self`; a class counts as its constructor."""
        known, found = self._known_names(function), list[str]()
        local = _bound_names(function.node)
        for node in ast.walk(function.node):
            if isinstance(node, ast.Name) and node.id not in known and node.id not in local:
                found.append(f"{function.module.name}.{node.id}")
            if not isinstance(node, ast.Attribute | ast.Name) or (name := dotted_name(node, known)) is None:
                continue
            first, _, rest = name.partition(".")
            if first in ("self", "cls") and function.owner is not None and rest and "." not in rest:
                method = self._method(f"{function.module.name}.{function.owner}", rest)
                found += [method] if method else []
                continue
            name = self._exports.origin(name)
            if name in self._functions:
                found.append(name)
            elif name in self._classes:
                found += self._special(name)
        return found

    def _maybe_used(self, function: _Function) -> list[str]:
        """Methods that it calls on objects: of the object's class or, if that is unknown, of any class."""
        kinds, found = Kinds(function.node, self._known_names(function), self._exports), list[str]()
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Attribute) or node.attr not in self._methods:
                continue
            kind = kinds.of(node.value)
            if kind is None:
                found += self._methods[node.attr]
            elif kind in self._classes:
                method = self._method(kind, node.attr)
                found += [method] if method else self._methods[node.attr]
        return found

    def _special(self, owner: str) -> list[str]:
        """Methods that are called without their name when an object of a class is made and used."""
        names = [name for name in self._methods if name.startswith("__") and name.endswith("__")]
        return [method for name in names if (method := self._method(owner, name))]

    def _method(self, owner: str, name: str) -> str | None:
        """The method of a class or of the nearest class it is made from."""
        waiting = [owner]
        for at in waiting:  # grows while it is walked
            if f"{at}.{name}" in self._functions:
                return f"{at}.{name}"
            bases = [self._exports.origin(base) for base in self._classes.get(at, ())]
            waiting += [base for base in bases if base not in waiting]
        return None


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _globals(tree: ast.Module) -> Iterator[tuple[str, AnyFunction]]:
    """The values that a module computes once, each name as a function that computes it."""
    made: dict[str, list[ast.stmt]] = {}
    waiting = list(tree.body)
    for node in waiting:  # grows while it is walked
        if isinstance(node, ast.If | ast.Try | ast.With):
            waiting += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for name in (
            each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)
        ):
            made.setdefault(name, []).append(node)
    nothing = ast.arguments([], [], None, [], [], None, [])
    for name, body in made.items():
        yield name, ast.FunctionDef(name, nothing, body, [])


def _bound_names(function: AnyFunction) -> set[str]:
    """Local names of the function."""
    nodes = list(ast.walk(function))
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    own = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    return (own | {node.arg for node in nodes if isinstance(node, ast.arg)}) - shared
