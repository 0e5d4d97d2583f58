"""Python functions that answer requests -> hits: text of a request that reaches a command, a query, a file or a page.

It is followed from statement to statement inside one function. Text counts as checked once it is turned into a number,
quoted, escaped, given to an unknown function or used in a condition. Runs in a child process.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chargehand.apps.review.analyzers.call_names import full_name, imported_names, last_name
from chargehand.apps.review.analyzers.examine import examine_trees
from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, blocks
from chargehand.apps.review.analyzers.syntax_nodes import child_nodes, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
# The parts of a request that its sender chooses.
PARTS = frozenset(
    {"args", "GET", "POST", "form", "values", "query_params", "cookies", "params", "json", "data", "headers", "files"}
    | {"query", "body", "query_string", "path_params", "match_info", "FILES", "META"}
)
READS = frozenset({"get_json", "get_data", "get_argument", "get_query_argument", "get_body_argument", "json", "form"})
# Methods of text and of parts of a request whose result still comes from the sender.
SAME = frozenset(
    {"get", "getlist", "pop", "strip", "lstrip", "rstrip", "lower", "upper", "replace", "encode", "decode", "split"}
    | {"format", "join", "read", "title", "removeprefix", "removesuffix", "partition", "rpartition", "items", "copy"}
)
PASSING = frozenset(
    {"str", "bytes", "repr", "list", "tuple", "dict", "os.path.join", "pathlib.Path", "base64.b64decode", "json.loads"}
    | {"urllib.parse.unquote", "urllib.parse.unquote_plus", "textwrap.dedent"}
)
# The names of functions that a cloud calls with an event.
HANDLERS = ("lambda_handler", "handler")
ROUTES = frozenset({"route", "get", "post", "put", "patch", "delete", "api_route", "websocket"})
SHELLS = frozenset(
    {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "commands.getoutput"}
    | {"asyncio.create_subprocess_shell", "asyncio.subprocess.create_subprocess_shell"}
)
PROGRAMS = frozenset({"run", "call", "check_call", "check_output", "Popen"})
QUERIES = frozenset({"execute", "executemany", "executescript", "raw", "RawSQL", "extra"})
FILES = frozenset(
    {"open", "io.open", "flask.send_file", "django.http.FileResponse", "os.remove", "os.unlink", "os.rmdir"}
    | {"os.listdir", "os.makedirs", "shutil.rmtree"}
)
VERBS = frozenset({"get", "post", "put", "patch", "delete", "head", "request"})
REDIRECTS = frozenset({"redirect", "HttpResponseRedirect", "HttpResponsePermanentRedirect", "RedirectResponse"})
PAGES = frozenset({"HttpResponse", "HttpResponseBadRequest", "HttpResponseNotFound", "HttpResponseServerError"})
ANY_PAGES = frozenset({"make_response", "Response", "HTMLResponse"})
_VARIABLE = re.compile(r"<(?:(?P<kind>\w+):)?(?P<flask>\w+)>|\{(?P<braces>\w+)(?::path)?\}")
_READING = re.compile(r"\b(?:req|request)\b|\bget_(?:query_|body_)?argument\b")
_MARKUP = re.compile(r"<[a-zA-Z/!]")
_SCHEME_ONLY = re.compile(r"(?:https?:)?(?://)?")

_ADVICE = {
    "flow:command": "Pass a list of arguments, and choose the program from names of your own.",
    "flow:code": "Parse the text instead of running it; give templates values, not text of the sender.",
    "flow:query": "Pass the value as a parameter of the query.",
    "flow:path": "Check that the resolved path is inside of the folder that is meant.",
    "flow:address": "Allow https and known hosts only.",
    "flow:redirect": "Redirect to paths of your own only: check that the address has no scheme and host.",
    "flow:page": "Render a template, or escape the value.",
}


def examine(order: AnalysisOrder) -> Hits:
    return examine_trees(order, _hits)


def _hits(source: SourceFile, tree: ast.Module) -> Iterable[Hit]:
    nodes = walk(tree)
    names = imported_names(nodes)
    reads = _READING.search(source.text) is not None
    for node in nodes:
        # Without a request to read from, only the parameters of a function can come from a sender.
        if isinstance(node, Function) and (reads or node.decorator_list or node.name in HANDLERS):
            yield from _Flow(source.path, names, node).follow()


@dataclass
class _Flow:
    """One function, statement by statement: `reads` has the line where each name got text of the request."""

    path: str
    names: dict[str, str]
    function: Function
    reads: dict[str, int] = field(default_factory=dict[str, int])
    # Names of texts with markup in them.
    markup: set[str] = field(default_factory=set[str])
    is_route: bool = False

    def follow(self) -> Iterator[Hit]:
        self.reads.update(dict.fromkeys(self._parameters(), self.function.lineno))
        yield from self._block(self.function.body)

    def _parameters(self) -> Iterator[str]:
        """Parameters that a sender chooses: parts of the route's path, and the event of a cloud function."""
        arguments = [*self.function.args.posonlyargs, *self.function.args.args]
        if self.function.name in HANDLERS and [each.arg for each in arguments[1:]] == ["context"]:
            yield arguments[0].arg
        for decorator in self.function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Attribute(attr=attr), args=[ast.Constant(value=str(path)), *_]) if (
                    attr in ROUTES
                ):
                    self.is_route = True
                    texts = {m["flask"] or m["braces"] for m in _VARIABLE.finditer(path) if m["kind"] in _TEXTS}
                    yield from (each.arg for each in arguments if each.arg in texts and _may_be_text(each.annotation))
                case _:
                    continue

    def _block(self, statements: list[ast.stmt]) -> Iterator[Hit]:
        for statement in statements:
            if isinstance(statement, Function | ast.ClassDef):
                continue
            for node in _own_nodes(statement):
                if isinstance(node, ast.Call):
                    yield from self._at_call(node)
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield from self._at_return(statement.value)
            self._forget_checked(statement)
            self._bind(statement)
            for block in blocks(statement):
                yield from self._block(block)

    # -- text from the sender

    def _line(self, node: ast.expr | None) -> int | None:
        """The line where text of the request in an expression was read; None if there is none."""
        match node:
            case ast.Name(id=name):
                return self.reads.get(name)
            case ast.Attribute(value=value, attr=attr):
                if attr in PARTS and last_name(value) in ("request", "req"):
                    return node.lineno
                return self._line(value)
            case ast.Subscript(value=value) | ast.FormattedValue(value=value) | ast.Await(value=value):
                return self._line(value)
            case ast.Starred(value=value) | ast.NamedExpr(value=value):
                return self._line(value)
            case ast.JoinedStr(values=parts) | ast.BoolOp(values=parts):
                return self._first(parts)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return self._first(parts)
            case ast.BinOp(left=left, op=ast.Add() | ast.Mod() | ast.Div(), right=right):
                return self._first((left, right))
            case ast.IfExp(body=left, orelse=right):
                return self._first((left, right))
            case ast.Dict(values=parts):
                return self._first(parts)
            case ast.Call():
                return self._line_of_call(node)
            case _:
                return None

    def _line_of_call(self, call: ast.Call) -> int | None:
        given = (*call.args, *(each.value for each in call.keywords))
        if isinstance(call.func, ast.Attribute):
            owner, method = call.func.value, call.func.attr
            if method in READS and last_name(owner) in ("request", "req"):
                return call.lineno
            if method in ("get_argument", "get_query_argument", "get_body_argument") and last_name(owner) == "self":
                return call.lineno
            if method in SAME and (found := self._line(owner)) is not None:
                return found
            if method in ("format", "join") and (found := self._first(given)) is not None:
                return found
        return self._first(given) if full_name(call.func, self.names) in PASSING else None

    def _first(self, nodes: Iterable[ast.expr | None]) -> int | None:
        return next((line for node in nodes if (line := self._line(node)) is not None), None)

    def _bind(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                line = self._line(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                targets, line = [target], self._line(value)
            case ast.AugAssign(target=target, value=value):
                targets, line = [target], self._first((target, value))
            case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
                targets, line = [target], self._line(value)
            case _:
                return
        for target in targets:
            for each in ast.walk(target):
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    self.reads.pop(each.id, None)
                    if line is not None:
                        self.reads[each.id] = line
                    if self._has_markup(value):
                        self.markup.add(each.id)

    def _forget_checked(self, statement: ast.stmt) -> None:
        """A name that a condition compares or gives to a function counts as checked from then on."""
        if isinstance(statement, ast.If | ast.While | ast.Assert):
            for node in ast.walk(statement.test):
                is_check = isinstance(node, ast.Call) or (isinstance(node, ast.Compare) and not _is_presence(node))
                for each in ast.walk(node) if is_check else ():
                    if isinstance(each, ast.Name):
                        self.reads.pop(each.id, None)

    # -- where it goes

    def _at_call(self, call: ast.Call) -> Iterator[Hit]:
        name = full_name(call.func, self.names)
        last = name.rpartition(".")[2] or last_name(call.func)
        first = call.args[0] if call.args else None
        if rule := self._rule(call, name, last, first):
            yield self._hit(rule, call, f"`{ast.unparse(call.func)[:60]}`")

    def _rule(self, call: ast.Call, name: str, last: str, first: ast.expr | None) -> str | None:
        line = self._line(first)
        if name in SHELLS and line is not None:
            return "flow:command"
        if name.startswith("subprocess.") and last in PROGRAMS and self._is_command(call, first):
            return "flow:command"
        if line is not None and (name in ("eval", "exec") or last in ("render_template_string", "from_string")):
            return "flow:code"
        if last in QUERIES and (line is not None or (last == "extra" and self._line(_keyword(call, "where")))):
            return "flow:query"
        if name in FILES and line is not None:
            return "flow:path"
        if last in REDIRECTS and self._leads(first):
            return "flow:redirect"
        if (name.startswith(("requests.", "httpx.")) and last in VERBS) or name == "urllib.request.urlopen":
            address = _keyword(call, "url") or (call.args[1] if last == "request" and call.args[1:] else first)
            return "flow:address" if self._leads(address) else None
        if line is None or _keyword(call, "content_type") or _keyword(call, "mimetype"):
            return None
        return "flow:page" if last in PAGES or (last in ANY_PAGES and self._has_markup(first)) else None

    def _is_command(self, call: ast.Call, first: ast.expr | None) -> bool:
        match first, _keyword(call, "shell"):
            case _, ast.Constant(value=True):
                return self._line(first) is not None
            case ast.List(elts=[program, *rest]), _:
                shell = any(isinstance(each, ast.Constant) and each.value == "-c" for each in rest)
                return self._line(program) is not None or (shell and self._first(rest) is not None)
            case _:
                return False

    def _leads(self, node: ast.expr | None) -> bool:
        """Whether the sender chooses the beginning of an address, and with it the host."""
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), part, *_]):
                return bool(_SCHEME_ONLY.fullmatch(start)) and self._line(part) is not None
            case ast.JoinedStr(values=[part, *_]):
                return self._line(part) is not None
            case ast.BinOp(left=ast.Constant(value=str(start)), right=part):
                return bool(_SCHEME_ONLY.fullmatch(start)) and self._line(part) is not None
            case ast.BinOp(left=left):
                return self._leads(left)
            case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant(value=str(text)))):
                return bool(_SCHEME_ONLY.fullmatch(text.partition("{")[0])) and self._line(node) is not None
            case ast.BoolOp(values=parts):
                return any(map(self._leads, parts))
            case ast.Constant() | None:
                return False
            case _:
                return self._line(node) is not None

    def _at_return(self, value: ast.expr) -> Iterator[Hit]:
        if self.is_route and self._has_markup(value) and self._line(value) is not None:
            yield self._hit("flow:page", value, "the page")

    def _has_markup(self, node: ast.expr | None) -> bool:
        for each in ast.walk(node) if node is not None else ():
            if isinstance(each, ast.Name) and each.id in self.markup:
                return True
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and _MARKUP.search(each.value):
                return True
        return False

    def _hit(self, rule: str, node: ast.expr, sink: str) -> Hit:
        given = (*node.args, *(each.value for each in node.keywords)) if isinstance(node, ast.Call) else (node,)
        read = self._first(given)
        where = f" (read in line {read})" if read is not None and read != node.lineno else ""
        message = f"Text that the sender of a request chooses reaches {sink}{where}."
        return Hit(rule, self.path, node.lineno, message, suggestion=_ADVICE[rule])


# Converters of Flask's routes that let any text through.
_TEXTS = frozenset({None, "string", "path"})


def _may_be_text(annotation: ast.expr | None) -> bool:
    return annotation is None or last_name(annotation) in ("str", "")


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _is_presence(node: ast.Compare) -> bool:
    """Whether it only checks if there is a value: `x is None`, `x == ""`."""
    return all(isinstance(each, ast.Constant) and each.value in (None, "") for each in node.comparators)


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, without those of statements and functions inside it."""
    waiting = child_nodes(statement)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case | ast.Lambda):
            continue
        yield node
        waiting += child_nodes(node)
