"""A function becomes what it can reach: the machine's files, processes or network, or nothing worth fearing.

It goes by names, through everything the function uses in its project. It cannot see through names made at run time:
that is what the sandbox is for. This keeps functions out that would do nothing there, or something meant for later.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from chargehand.testgen.discover import AnyFunction, functions
from chargehand.testgen.kinds import Kinds
from chargehand.testgen.names import Exports, dotted, imports
from chargehand.testgen.project import Module

# What a module reaches; the longest name that fits counts, and "" is nothing.
_REACHES: dict[str, str] = {
    "os": "os",
    **dict.fromkeys(("os.sep", "os.linesep", "os.pathsep", "os.curdir", "os.extsep", "os.fspath", "os.PathLike"), ""),
    **{f"os.path.{name}": "" for name in ("join", "basename", "dirname", "split", "splitext", "normpath", "isabs")},
    **{f"os.path.{name}": "" for name in ("commonpath", "commonprefix", "normcase", "sep")},
    **dict.fromkeys(
        ("shutil", "tempfile", "sqlite3", "shelve", "dbm", "mmap", "fcntl", "logging.FileHandler"), "files"
    ),
    **dict.fromkeys(("subprocess", "multiprocessing", "signal", "pty", "asyncio.create_subprocess_exec"), "processes"),
    **dict.fromkeys(("asyncio.create_subprocess_shell", "concurrent.futures.ProcessPoolExecutor"), "processes"),
    **dict.fromkeys(("socket", "socketserver", "ssl", "http", "urllib.request", "ftplib", "smtplib"), "the network"),
    **dict.fromkeys(("imaplib", "poplib", "telnetlib", "xmlrpc", "webbrowser", "asyncio.start_server"), "the network"),
    **dict.fromkeys(("asyncio.open_connection", "requests", "httpx", "aiohttp", "urllib3", "boto3"), "the network"),
    **dict.fromkeys(("botocore", "paramiko", "psycopg", "psycopg2", "pymysql", "redis", "pymongo"), "the network"),
    **dict.fromkeys(("docker", "selenium", "playwright", "openai", "anthropic", "websockets", "grpc"), "the network"),
    **dict.fromkeys(
        ("ctypes", "importlib", "runpy", "pickle.load", "pickle.loads", "marshal"), "code made at run time"
    ),
    **dict.fromkeys(("builtins.eval", "builtins.exec", "builtins.compile"), "code made at run time"),
    "builtins.__import__": "code made at run time",
    **dict.fromkeys(("builtins.input", "builtins.breakpoint", "getpass"), "the terminal"),
    "sys.stdin": "the terminal",
    # What depends on the day or on chance is not tested by what it once gave.
    **{f"time.{name}": "the clock" for name in ("time", "time_ns", "localtime", "gmtime", "ctime", "monotonic")},
    **{f"time.{name}": "the clock" for name in ("perf_counter", "process_time", "strftime", "monotonic_ns")},
    **{f"datetime.datetime.{name}": "the clock" for name in ("now", "today", "utcnow")},
    "datetime.date.today": "the clock",
    "random": "chance",
    "random.Random": "",
    **dict.fromkeys(("secrets", "uuid.uuid1", "uuid.uuid4", "numpy.random"), "chance"),
}
_WRITING_METHODS = frozenset(
    {"write_text", "write_bytes", "unlink", "mkdir", "rmdir", "touch", "rename", "symlink_to", "hardlink_to", "chmod"}
)
_CLOCK_METHODS = frozenset({"now", "today", "utcnow"})
_OPENING = frozenset(
    {"builtins.open", "io.open", "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile"}
)


@dataclass(frozen=True, slots=True)
class Danger:
    """What is reached, by which name, where, and through which functions."""

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
        for module in modules:
            package = module.path.endswith("__init__.py")
            known = imports([module.tree], module.name, package=package)
            defined = {n.name for n in module.tree.body if isinstance(n, AnyFunction | ast.ClassDef)}
            self._imports[module.name] = {**known, **{name: f"{module.name}.{name}" for name in defined}}
            for owner, node in functions(module.tree):
                name = f"{owner.name}.{node.name}" if owner else node.name
                self._functions[f"{module.name}.{name}"] = _Function(module, owner.name if owner else None, node)
                if owner is not None:
                    self._methods.setdefault(node.name, []).append(f"{module.name}.{name}")
            for node in (each for each in module.tree.body if isinstance(each, ast.ClassDef)):
                bases = [dotted(base, self._imports[module.name]) for base in node.bases]
                self._classes[f"{module.name}.{node.name}"] = [base for base in bases if base]

    def danger(self, name: str) -> Danger | None:
        """The first thing to fear that the function leads to, nearest first; None when there is none."""
        owner = name.rpartition(".")[0]
        # A method's object has to be made first.
        makers = self._special(owner) if owner in self._classes else []
        waiting: list[tuple[str, tuple[str, ...]]] = [(name, ()), *((maker, (_last(maker),)) for maker in makers)]
        seen = {name, *makers}
        for at, way in waiting:  # grows while it is walked
            function = self._functions.get(at)
            if function is None:
                continue
            if (found := self._own_danger(function, way)) is not None:
                return found
            for used in [*self._used(function), *self._maybe_used(function)]:
                if used not in seen:
                    seen.add(used)
                    waiting.append((used, (*way, _last(used))))
        return None

    def raises(self, name: str) -> list[str]:
        """Exceptions that the function or what it uses raises by name, or promises to in its docstring."""
        found: dict[str, None] = {}
        waiting = [name]
        for at in waiting:  # grows while it is walked
            if (function := self._functions.get(at)) is None:
                continue
            for node in ast.walk(function.node):
                raised = node.exc if isinstance(node, ast.Raise) else None
                called = raised.func if isinstance(raised, ast.Call) else raised
                if called is not None and (exception := dotted(called, self._imports[function.module.name])):
                    found[self._exports.origin(exception)] = None
            waiting += [used for used in self._used(function) if used not in waiting]
        return list(found)

    def _own_danger(self, function: _Function, way: tuple[str, ...]) -> Danger | None:
        known = self._known(function)
        nodes = list(ast.walk(function.node))
        # Of `os.path.join` only the whole counts, not `os`.
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            reached = _call(node, known) if isinstance(node, ast.Call) else None
            if reached is None and isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
                reached = _named(node, known)
            if reached is not None:
                line = cast("ast.expr", node).lineno
                return Danger(reached[0], reached[1], function.module.path, line, way)
        return None

    def _known(self, function: _Function) -> Mapping[str, str]:
        module = function.module
        package = module.path.endswith("__init__.py")
        return {**self._imports[module.name], **imports([function.node], module.name, package=package)}

    def _used(self, function: _Function) -> list[str]:
        """Functions of the project that this one mentions, by name or through `self`; a class stands for its making."""
        known, found = self._known(function), list[str]()
        for node in ast.walk(function.node):
            if not isinstance(node, ast.Attribute | ast.Name) or (name := dotted(node, known)) is None:
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
        """Methods it calls on objects: of the class the object is of or, where that is not to be seen, of any class."""
        kinds, found = Kinds(function.node, self._known(function), self._exports), list[str]()
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
        """What making and using an object of a class calls without naming it."""
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


def _named(node: ast.Attribute | ast.Name, known: Mapping[str, str]) -> tuple[str, str] | None:
    name = dotted(node, known)
    if name is None:
        return None
    if isinstance(node, ast.Name) and name == node.id and hasattr(builtins, name):
        name = f"builtins.{name}"
    fitting = [each for each in _REACHES if name == each or name.startswith(f"{each}.")]
    what = _REACHES[max(fitting, key=len)] if fitting else ""
    return (what, name.removeprefix("builtins.")) if what else None


def _call(node: ast.Call, known: Mapping[str, str]) -> tuple[str, str] | None:
    """Calls that write: opening for writing, and methods of paths that change the disk."""
    name = dotted(node.func, known)
    if name == "open":
        name = "builtins.open"
    method = node.func.attr if isinstance(node.func, ast.Attribute) else None
    if method in _CLOCK_METHODS and not node.args:
        return "the clock", f".{method}()"
    if method in _WRITING_METHODS:
        return "files", f".{method}()"
    if name in _OPENING or method == "open":
        place = 1 if name in _OPENING else 0
        mode = next((k.value for k in node.keywords if k.arg == "mode"), None)
        mode = mode or (node.args[place] if len(node.args) > place else None)
        if mode is None:
            return None
        text = mode.value if isinstance(mode, ast.Constant) else "w"
        if not isinstance(text, str) or set(text) & set("wax+"):
            return "files", "open for writing"
    return None
