"""A name or a call becomes what it reaches: files, processes, the network, the clock, the machine; or nothing."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Mapping

from chargehand.apps.testgen.names import dotted_name

# Methods of paths that depend on the disk of the machine, not only on the code.
_LOOKING_METHODS = frozenset(
    {"exists", "is_file", "is_dir", "is_symlink", "is_mount", "stat", "lstat", "iterdir", "owner", "readlink"}
    | {"expanduser", "isatty"}
)
# What a module reaches. The longest name that fits counts, and "" means nothing.
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
    **dict.fromkeys(("socket", "socketserver", "ssl", "http.client", "http.server", "urllib.request"), "the network"),
    **dict.fromkeys(("ftplib", "smtplib"), "the network"),
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
    # Results that depend on the machine, the sandbox or the start of Python are not facts about the code.
    **dict.fromkeys(("platform", "resource", "locale", "sysconfig", "site", "pwd", "grp"), "the machine"),
    **dict.fromkeys(("gc", "glob.glob", "glob.iglob"), "the machine"),
    **dict.fromkeys(("pathlib.Path.cwd", "pathlib.Path.home", "time.tzname", "time.timezone"), "the machine"),
    **{f"pathlib.Path.{name}": "the machine" for name in _LOOKING_METHODS},
    "sys": "the machine",
    **dict.fromkeys(("sys.platform", "sys.version_info", "sys.byteorder", "sys.maxsize", "sys.maxunicode"), ""),
    **dict.fromkeys(("sys.float_info", "sys.int_info", "sys.hash_info", "sys.stdout", "sys.stderr", "sys.exit"), ""),
    **dict.fromkeys(("sys.intern", "sys.exc_info", "sys.exception", "sys.implementation"), ""),
    **dict.fromkeys(("sys.modules", "sys.meta_path", "sys.path_hooks", "sys._getframe"), "code made at run time"),
    "sys.stdin": "the terminal",
    # Results that depend on the day or on chance cannot be tested by an earlier result.
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


def danger_of_name(
    node: ast.Attribute | ast.Name, known: Mapping[str, str], local: Collection[str]
) -> tuple[str, str] | None:
    """By its name alone: `os.remove`, `eval`. A name that was not imported is local, a built-in or unknown."""
    spelled, name = dotted_name(node, {}), dotted_name(node, known)
    if spelled is None or name is None or (first := spelled.partition(".")[0]) in local:
        return None
    if first not in known:
        if not hasattr(builtins, spelled):
            return None
        name = f"builtins.{spelled}"
    fitting = [each for each in _REACHES if name == each or name.startswith(f"{each}.")]
    what = _REACHES[max(fitting, key=len)] if fitting else ""
    return (what, name.removeprefix("builtins.")) if what else None


def danger_of_call(node: ast.Call, known: Mapping[str, str]) -> tuple[str, str] | None:
    """By what is called: opening for writing, methods of paths that change or read the disk, methods of the clock."""
    name = dotted_name(node.func, known)
    if name == "open":
        name = "builtins.open"
    method = node.func.attr if isinstance(node.func, ast.Attribute) else None
    if method in _CLOCK_METHODS and not node.args:
        return "the clock", f".{method}()"
    if (method in _LOOKING_METHODS and not node.args) or method == "rglob":
        return "the machine", f".{method}()"
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
