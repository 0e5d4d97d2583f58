"""Python loops that do too much, as hits: a query or request per element, quadratic work, repeated work."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, blocks
from chargehand.apps.review.analyzers.syntax_nodes import child_nodes

Loop = ast.For | ast.AsyncFor | ast.While

DATABASE = frozenset(
    {"cursor", "cur", "conn", "connection", "db", "database", "session", "engine", "tx", "transaction"}
)
EXECUTES = frozenset({"execute", "executescript", "fetch", "fetchrow", "fetchval", "query", "scalar", "scalars"})
MANAGER = frozenset({"get", "filter", "first", "create", "save", "exclude", "count", "exists", "all", "get_or_create"})
HTTP = frozenset({"requests", "httpx", "urllib.request"})
VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "request", "urlopen"})


def examine(order: AnalysisOrder) -> Hits:
    return examine_trees(order, _hits)


def _hits(source: SourceFile, tree: ast.Module) -> Iterable[Hit]:
    found = (
        Hit(rule, source.path, node.lineno, message, suggestion=advice) for rule, node, message, advice in _in(tree)
    )
    return dict.fromkeys(found)


Found = tuple[str, ast.expr | ast.stmt, str, str]


def _in(tree: ast.Module) -> Iterator[Found]:
    """The problems of every loop. Code in a nested loop belongs to the nested loop."""
    scopes: list[list[ast.stmt]] = [tree.body]
    while scopes:
        statements = _statements(scopes.pop(), scopes)
        loops = [statement for statement in statements if isinstance(statement, Loop)]
        kinds = _kinds(statements) if loops else {}
        for loop in loops:
            # A value that is made again in every iteration does not grow.
            remade = {name for statement in loop.body for name in _bound_names(statement)}
            lasting = {name: kind for name, kind in kinds.items() if name not in remade}
            for node in _own(loop):
                yield from _at(node, loop, lasting)


def _statements(body: list[ast.stmt], scopes: list[list[ast.stmt]]) -> list[ast.stmt]:
    """Every statement of a scope; bodies of functions and classes in it are added to `scopes`."""
    found: list[ast.stmt] = []
    stack = [body]
    while stack:
        for statement in stack.pop():
            found.append(statement)
            inner = scopes if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else stack
            inner.extend(blocks(statement))
    return found


def _own(loop: Loop) -> Iterator[ast.AST]:
    """The nodes that run in every iteration of a loop, without those of loops and functions inside it."""
    stack: list[ast.AST] = [*loop.body, *([loop.test] if isinstance(loop, ast.While) else [])]
    while stack:
        node = stack.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | Loop):
            yield node
            stack += child_nodes(node)


def _at(node: ast.AST, loop: Loop, kinds: dict[str, str]) -> Iterator[Found]:
    match node:
        case ast.Call(func=ast.Attribute() | ast.Name()):
            yield from _call(node, loop, kinds)
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]) if kinds.get(name) == "list":
            if name not in _targets(loop):
                yield (
                    "loops:seen" if _grows(name, loop) else "loops:membership",
                    node,
                    f"`in {name}` searches the whole list on every turn of the loop.",
                    f"Look it up in a set made from {name} once.",
                )
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()) if kinds.get(name) == "str":
            yield (
                "loops:concatenation",
                node,
                f"`{name} +=` copies the whole text on every turn of the loop.",
                'Collect the parts in a list and "".join them after the loop.',
            )
        case _:
            return


def _call(node: ast.Call, loop: Loop, kinds: dict[str, str]) -> Iterator[Found]:
    name = _dotted_name(node.func)
    *owner, verb = name.split(".")
    last = owner[-1] if owner else ""
    # A loop that depends on its last answer (pages, retries, polling) cannot be replaced by one query.
    for_each = isinstance(loop, ast.For | ast.AsyncFor) and not _is_range(loop.iter)
    about_element = bool(_targets(loop) & {each.id for each in ast.walk(node) if isinstance(each, ast.Name)})
    # In a loop over statements the element is the query, so they must run one by one.
    is_statement = bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id in _targets(loop)
    if for_each and about_element and not is_statement and _is_query(last, verb, owner):
        yield (
            "loops:query",
            node,
            f"`{name}` runs one query for each element of the loop.",
            "Ask for all elements in one query (IN, JOIN, executemany, select_related) before the loop.",
        )
    elif for_each and about_element and verb in VERBS and ".".join(owner) in HTTP:
        yield (
            "loops:request",
            node,
            f"`{name}` makes one request after the other, one for each element.",
            "Use a batch endpoint, a shared client, or make the requests concurrently.",
        )
    elif name == "re.compile" and node.args and isinstance(node.args[0], ast.Constant):
        yield (
            "loops:invariant",
            node,
            "`re.compile` of a constant pattern inside a loop.",
            "Compile it once before the loop.",
        )
    elif (
        isinstance(node.func, ast.Attribute) and kinds.get(last) == "list" and len(owner) == 1 and _at_front(verb, node)
    ):
        yield (
            "loops:front",
            node,
            f"`{name}` at the front moves every other element, on every turn of the loop.",
            "Use collections.deque, or append and reverse once.",
        )


def _is_query(last: str, verb: str, owner: list[str]) -> bool:
    if verb in EXECUTES and (last.lstrip("_") in DATABASE or last.endswith(("_cursor", "_conn", "_session", "_db"))):
        return True
    # Django: Model.objects.get(...) for each element.
    return verb in MANAGER and "objects" in owner


def _at_front(verb: str, node: ast.Call) -> bool:
    first = node.args[0] if node.args else None
    return (
        isinstance(first, ast.Constant) and first.value == 0 and type(first.value) is int and verb in ("pop", "insert")
    )


def _grows(name: str, loop: Loop) -> bool:
    return any(isinstance(node, ast.Call) and _dotted_name(node.func) == f"{name}.append" for node in _own(loop))


def _bound_names(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


def _kinds(statements: list[ast.stmt]) -> dict[str, str]:
    """Names that are bound to a list or a text and to nothing else in this scope."""
    kinds: dict[str, set[str]] = {}
    for node in statements:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Name):
                        kinds.setdefault(target.id, set()).add(_kind(value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                kinds.setdefault(name, set()).add(_kind(value))
            case ast.For(target=ast.Name(id=name)):
                kinds.setdefault(name, set()).add("")
            case _:
                continue
    return {name: next(iter(each)) for name, each in kinds.items() if len(each) == 1}


def _kind(value: ast.expr) -> str:
    match value:
        case ast.List(elts=elements):
            # A short literal is as fast as a set.
            return "list" if not elements or 9 <= len(elements) < 10_000 else ""
        case ast.ListComp() | ast.Call(func=ast.Name(id="list" | "sorted")):
            return "list"
        case ast.Constant(value=str()) | ast.JoinedStr():
            return "str"
        case _:
            return ""


def _targets(loop: Loop) -> set[str]:
    if isinstance(loop, ast.While):
        return set()
    return {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _dotted_name(node.func) in ("range", "count", "itertools.count", "iter")


def _dotted_name(node: ast.expr) -> str:
    """`a.b.c` of a name or attribute; calls and subscripts in between are left out."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Attribute(value=value, attr=attr):
                parts.append(attr)
                node = value
            case ast.Call(func=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Name(id=name):
                parts.append(name)
                break
            case _:
                break
    return ".".join(reversed(parts))
