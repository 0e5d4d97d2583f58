"""Test sources of one module's functions become one file: each import once, and no two tests with the same name."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterable, Mapping, Sequence

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def assemble(module: str, sources: Mapping[str, str], note: str) -> tuple[str, dict[str, str]]:
    """One file from many, in order; empty if none has a test. A name defined twice is numbered.

    Also returns the source of each test.
    """
    owners: dict[str, str] = {}
    modules: dict[str, None] = {}
    names: dict[str, dict[str, None]] = {}
    bodies: list[str] = []
    taken: set[str] = set()
    for id, source in sources.items():
        tree = use_module(ast.parse(source), module)
        _rename(tree, taken)
        owners |= {node.name: id for node in tree.body if isinstance(node, Definition)}
        for node in tree.body:
            if isinstance(node, ast.Import):
                modules.update(dict.fromkeys(ast.unparse(ast.Import([name])) for name in node.names))
            elif isinstance(node, ast.ImportFrom):
                base = f"{'.' * node.level}{node.module or ''}"
                names.setdefault(base, {}).update(dict.fromkeys(ast.unparse(name) for name in node.names))
            elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                bodies.append(ast.unparse(node))
    if not any(body.startswith(("def test_", "class Test", "@")) for body in bodies):
        return "", {}
    imports = [*sorted(modules), *(f"from {base} import {', '.join(sorted(names[base]))}" for base in sorted(names))]
    first = [line for line in imports if line.startswith("from __future__")]
    rest = [line for line in imports if line not in first]
    head = f'"""Tests of {module}, written by `chargehand testgen`.\n\n{note}\n"""'
    text = "\n\n\n".join(["\n".join([head, *(["", *first] if first else []), "", *rest]), *bodies]) + "\n"
    return text, owners


def use_module(tree: ast.Module, module: str) -> ast.Module:
    """The file with the module under test imported as a module, as in all files here: `from a import b`, `b.f(1)`.

    Names that the file also uses for something else are not changed.
    """
    package, _, last = module.rpartition(".")
    ours = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == module]
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    moved = {name.asname or name.name: name.name for node in ours for name in node.names}
    if not moved or "*" in moved or bound & {*moved, last} or keyword.iskeyword(last) or hasattr(builtins, last):
        return tree

    class Qualifier(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return ast.Attribute(ast.Name(last, ast.Load()), moved[node.id], node.ctx) if node.id in moved else node

    line: ast.stmt = ast.ImportFrom(package, [ast.alias(last)], 0) if package else ast.Import([ast.alias(last)])
    tree.body = [line if node is ours[0] else node for node in tree.body if node not in ours[1:]]
    return ast.fix_missing_locations(Qualifier().visit(tree))


def hide_from_collection(source: str) -> str:
    """The file with imported names that pytest would take for tests under other names."""
    tree = ast.parse(source)
    changed: dict[str, str] = {}
    for node in tree.body:
        for name in node.names if isinstance(node, ast.ImportFrom) else ():
            if (local := name.asname or name.name).lower().startswith("test"):
                name.asname = changed[local] = f"_{local}"
    if not changed:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in changed:
            node.id = changed[node.id]
    return ast.unparse(tree) + "\n"


def without(source: str, names: Iterable[str]) -> str:
    """The file without some of its tests; empty when none is left. Unused imports are removed too."""
    gone = set(names)
    tree = ast.parse(source)
    kept = [node for node in tree.body if not (isinstance(node, Definition) and node.name in gone)]
    if not any(isinstance(node, Definition) and node.name.lower().startswith("test") for node in kept):
        return ""
    used = {part for node in kept if not isinstance(node, ast.Import | ast.ImportFrom) for part in _names(node)}
    lines = source.splitlines()
    for node in tree.body:
        if node not in kept:
            start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            lines[start - 1 : node.end_lineno] = [""] * ((node.end_lineno or start) - start + 1)
        elif isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__":
            node.names = [name for name in node.names if (name.asname or name.name).partition(".")[0] in used]
            lines[node.lineno - 1 : node.end_lineno] = [ast.unparse(node)] if node.names else [""]
    return _limit_blank_lines(lines)


def _limit_blank_lines(lines: Sequence[str]) -> str:
    """At most two empty lines in a row."""
    kept: list[str] = []
    for line in lines:
        if line or kept[-2:] != ["", ""]:
            kept.append(line)
    return "\n".join(kept).strip("\n") + "\n"


def _names(node: ast.AST) -> Iterable[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _rename(tree: ast.Module, taken: set[str]) -> None:
    """Rename a definition that another file also has, wherever its file uses it."""
    changed: dict[str, str] = {}
    for name in _defined_names(tree):
        new, number = name, 2
        while new in taken:
            new, number = f"{name}_{number}", number + 1
        taken.add(new)
        changed[name] = new
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in changed:
            node.id = changed[node.id]
        elif isinstance(node, ast.arg) and node.arg in changed:
            node.arg = changed[node.arg]  # a fixture is used by its name
    for node in tree.body:
        if isinstance(node, Definition):
            node.name = changed[node.name]


def _defined_names(tree: ast.Module) -> Iterable[str]:
    found: dict[str, None] = {}
    for node in tree.body:
        if isinstance(node, Definition):
            found[node.name] = None
        elif isinstance(node, ast.Assign):
            found.update(dict.fromkeys(target.id for target in node.targets if isinstance(target, ast.Name)))
    return found
