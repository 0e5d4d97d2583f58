"""Python calls and assignments that switch a protection off, as hits: certificates, signatures, XML, pages, queries.

What other tools report is not repeated. Runs in a child process.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from chargehand.apps.review.analyzers.call_names import full_name, imported_names, last_name
from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.options_of_callers import is_option
from chargehand.apps.review.analyzers.source_files import SourceFile
from chargehand.apps.review.analyzers.syntax_nodes import parents, walk

Found = tuple[str, ast.expr | ast.stmt, str, str | None]
UNESCAPED = frozenset({"mark_safe", "Markup", "SafeString", "SafeText", "format_html"})
# These functions create objects of any class while they read. Other tools know only `pickle`.
OBJECTS = frozenset({"_pickle.load", "_pickle.loads", "cPickle.load", "cPickle.loads", "jsonpickle.decode"})

# asyncio's calls that start a shell, and which argument is the command.
SHELL_CALLS = {"create_subprocess_shell": 0, "subprocess_shell": 1}
_SQL = re.compile(r"(?i)\b(?:select|insert|update|delete|where|order by)\b")


def examine(order: AnalysisOrder) -> Hits:
    return examine_trees(order, _hits)


def _hits(source: SourceFile, tree: ast.Module) -> Iterable[Hit]:
    nodes = walk(tree)
    names = imported_names(nodes)
    for node in nodes:
        if not isinstance(node, ast.Assign | ast.Call):
            continue
        for rule, at, message, advice in _at(node, names):
            at_most = "info" if isinstance(at, ast.Assign) and is_option(at, parents(tree)) else None
            yield Hit(rule, source.path, at.lineno, message, suggestion=advice, at_most=at_most)


def _at(node: ast.AST, names: dict[str, str]) -> Iterator[Found]:
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="verify_mode")], value=value) if last_name(value) == "CERT_NONE":
            yield "unsafe:verify-mode", node, "Certificates are not checked (CERT_NONE).", None
        case ast.Assign(targets=[ast.Attribute(attr="check_hostname")], value=ast.Constant(value=False)):
            yield "unsafe:hostname", node, "The name in a certificate is not checked.", None
        case ast.Call(func=func):
            yield from _at_call(node, full_name(func, names))
        case _:
            pass


def _at_call(call: ast.Call, name: str) -> Iterator[Found]:
    keywords = {each.arg: each.value for each in call.keywords if each.arg}
    package, _, function = name.rpartition(".")
    if function == "decode" and package in ("jwt", "jose.jwt") and _is_unverified(keywords):
        advice = "Verify it with the key and the algorithms that you expect."
        yield "unsafe:signature", call, "A token is read without verifying its signature.", advice
    elif function == "XMLParser" and package.startswith("lxml") and _expands(keywords):
        yield "unsafe:entities", call, "lxml expands entities or fetches what a document names.", None
    elif function in UNESCAPED and call.args and _is_built(call.args[0]):
        yield "unsafe:markup", call, "Text that is put together from values reaches a page unescaped.", None
    elif function in ("raw", "RawSQL") and call.args and _is_built(call.args[0]) and _is_query(call.args[0]):
        yield "unsafe:query", call, "SQL is built from strings instead of parameters.", "Pass the values as parameters."
    elif function in SHELL_CALLS and _is_dynamic(call.args[SHELL_CALLS[function] :]):
        advice = "Use create_subprocess_exec with a list of arguments."
        yield "unsafe:shell", call, "A shell runs a command built from data.", advice
    elif name in OBJECTS or (function == "YAML" and _value(keywords.get("typ")) == "unsafe"):
        yield "unsafe:objects", call, "Untrusted data can construct any object.", "Use JSON, or yaml.safe_load."
    elif name == "jwt.encode" and isinstance(key := _nth(call, 1) or keywords.get("key"), ast.Constant) and key.value:
        advice = "Read it from the environment or a secret store, and revoke this one."
        yield "unsafe:key", call, "Tokens are signed with a key that is in the source.", advice
    elif _value(keywords.get("allow_credentials")) is True and _allows_all(keywords.get("allow_origins")):
        advice = "Name the origins that may send credentials."
        yield "unsafe:origins", call, "Any website may send requests with the visitor's credentials.", advice


def _nth(call: ast.Call, number: int) -> ast.expr | None:
    return call.args[number] if len(call.args) > number else None


def _value(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _allows_all(node: ast.expr | None) -> bool:
    return isinstance(node, ast.List | ast.Tuple) and any(_value(each) == "*" for each in node.elts)


def _is_dynamic(arguments: list[ast.expr]) -> bool:
    return bool(arguments) and not isinstance(arguments[0], ast.Constant)


def _is_query(node: ast.expr) -> bool:
    """Whether the part of its text that is in the source is SQL."""
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return any(isinstance(text, str) and _SQL.search(text) for text in texts)


def _is_unverified(keywords: dict[str, ast.expr]) -> bool:
    algorithms = keywords.get("algorithms")
    if isinstance(algorithms, ast.List) and any(_value(each) in ("none", "None") for each in algorithms.elts):
        return True
    match keywords.get("verify"), keywords.get("options"):
        case ast.Constant(value=False), _:
            return True
        case _, ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return any(isinstance(k, ast.Constant) and k.value == "verify_signature" and _is_false(v) for k, v in pairs)
        case _:
            return False


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _expands(keywords: dict[str, ast.expr]) -> bool:
    given = {name: _value(value) for name, value in keywords.items()}
    return given.get("resolve_entities") is True or given.get("load_dtd") is True or given.get("no_network") is False


def _is_built(node: ast.expr) -> bool:
    """Whether text is built from a value that is not in the source."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(each, ast.FormattedValue) for each in values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return not all(isinstance(leaf, ast.Constant) for leaf in _leaves(node))
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant()), args=args, keywords=keywords):
            return bool(args or keywords)
        case _:
            return False


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _leaves(node.left)
        yield from _leaves(node.right)
    else:
        yield node
