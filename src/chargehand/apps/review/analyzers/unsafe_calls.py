"""Python calls and assignments that switch a protection off, as hits: certificates, signatures, redirects, XML, pages.

What other tools report is not repeated. Runs in a child process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import Hit, Hits, Order
from chargehand.apps.review.analyzers.source_files import SourceFile

Found = tuple[str, ast.expr | ast.stmt, str, str | None]
REDIRECTS = frozenset({"redirect", "HttpResponseRedirect", "HttpResponsePermanentRedirect", "RedirectResponse"})
UNESCAPED = frozenset({"mark_safe", "Markup", "SafeString", "SafeText"})


def examine(order: Order) -> Hits:
    return examine_trees(order, _hits)


def _hits(source: SourceFile, tree: ast.Module) -> Iterable[Hit]:
    names = _imported(tree)
    for node in ast.walk(tree):
        for rule, at, message, advice in _at(node, names):
            yield Hit(rule, source.path, at.lineno, message, suggestion=advice)


def _at(node: ast.AST, names: dict[str, str]) -> Iterator[Found]:
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="verify_mode")], value=value) if _last(value) == "CERT_NONE":
            yield "unsafe:verify-mode", node, "Certificates are not checked (CERT_NONE).", None
        case ast.Assign(targets=[ast.Attribute(attr="check_hostname")], value=ast.Constant(value=False)):
            yield "unsafe:hostname", node, "The name in a certificate is not checked.", None
        case ast.Call(func=func):
            yield from _at_call(node, _full_name(func, names))
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
    elif function in REDIRECTS and call.args and _is_from_request(call.args[0]):
        advice = "Redirect to paths of your own only: check that the address has no scheme and host."
        yield "unsafe:redirect", call, "The address to redirect to comes from the request.", advice
    elif function in UNESCAPED and call.args and _is_built(call.args[0]):
        yield "unsafe:markup", call, "Text that is put together from values reaches a page unescaped.", None


def _imported(tree: ast.Module) -> dict[str, str]:
    """Names of the file -> what they are imported from."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({each.asname or each.name.partition(".")[0]: each.name for each in node.names if each.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
    return found


def _full_name(node: ast.expr, names: dict[str, str]) -> str:
    """`etree.XMLParser` -> `lxml.etree.XMLParser`; "" for what is not a plain name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([names.get(node.id, node.id), *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_unverified(keywords: dict[str, ast.expr]) -> bool:
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
    def given(name: str) -> object:
        value = keywords.get(name)
        return value.value if isinstance(value, ast.Constant) else None

    return given("resolve_entities") is True or given("load_dtd") is True or given("no_network") is False


def _is_from_request(node: ast.expr) -> bool:
    """Whether it is read from a request as it is: `request.args["next"]`, `self.request.GET.get("next")`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and _is_from_request(node.func)
    inner = node.value if isinstance(node, ast.Subscript | ast.Attribute) else None
    if isinstance(node, ast.Attribute) and isinstance(inner, ast.Name | ast.Attribute) and _last(inner) == "request":
        return node.attr in ("args", "GET", "POST", "form", "values", "query_params", "cookies", "params")
    return inner is not None and _is_from_request(inner)


def _is_built(node: ast.expr) -> bool:
    """Whether text is put together from something that is not in the source."""
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
