"""`@tool` turns a typed function into a Tool: name, description and JSON schema for the model, and how to run it."""

from __future__ import annotations

import hashlib
import inspect
import marshal
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, get_args, overload

from chargehand.errors import UsageError
from chargehand.tools import docstring
from chargehand.tools.parameter_schema import Parameters
from chargehand.values.message import ToolEffect, ToolSpec

if TYPE_CHECKING:
    from typing_extensions import ParamSpec as DefaultParamSpec
    from typing_extensions import TypeVar as DefaultTypeVar

    # The parameters and the return type of the function.
    P = DefaultParamSpec("P", default=...)
    R = DefaultTypeVar("R", default=Any)
else:
    P = ParamSpec("P")
    R = TypeVar("R")

# Tool names that both providers accept.
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True)
class Tool(Generic[P, R]):
    """A function a model can call; calling the Tool calls the function, whose signature it has."""

    name: str
    description: str
    fn: Callable[P, R]
    effect: ToolEffect = "once"
    isolated: bool = False
    # A person approves each call.
    approve: bool = False
    # It uses the network: a worker of a team folder gets it only when the folder is trusted.
    needs_trust: bool = False
    # What is missing for it to work here, such as a key; a tool that lacks something is not offered to workers.
    lacks: Callable[[], str | None] | None = None

    def __post_init__(self) -> None:
        """Be known by the function's names, as `functools.wraps` does it; the fields of the Tool stay frozen."""
        for name in ("__module__", "__name__", "__qualname__", "__doc__"):
            if (said := getattr(self.fn, name, None)) is not None:
                self.__dict__[name] = said

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name!r}, effect {self.effect}>"

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """For `inspect.signature` and `help`."""
        return self.fn

    @property
    def offered(self) -> bool:
        """Whether it can work here."""
        return self.lacks is None or self.lacks() is None

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)

    @cached_property
    def arguments(self) -> Parameters:
        """Checks and schema of the arguments. Made at first use, when every name in the annotations exists."""
        return Parameters.of(self.fn)

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments."""
        return self.arguments.schema

    @cached_property
    def code(self) -> str:
        """A hash of the file the function is in, so that a rerun notices when the code has changed."""
        file = inspect.getsourcefile(self.fn)
        source = Path(file).read_bytes() if file and Path(file).is_file() else marshal.dumps(self.fn.__code__)
        return hashlib.sha256(source).hexdigest()[:16]

    @cached_property
    def spec(self) -> ToolSpec:
        """The tool as it is described to a model."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)


class DefineTool(Protocol):
    """`@tool(...)`: turns the function below it into a tool."""

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(fn: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    effect: ToolEffect = "once",
    isolated: bool = False,
    approve: bool = False,
    name: str | None = None,
    needs_trust: bool = False,
    lacks: Callable[[], str | None] | None = None,
) -> DefineTool: ...


def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    effect: ToolEffect = "once",
    isolated: bool = False,
    approve: bool = False,
    name: str | None = None,
    needs_trust: bool = False,
    lacks: Callable[[], str | None] | None = None,
) -> Tool | DefineTool:
    """A typed function, or a method of an object, as a tool.

    `effect` says what a repeat would do: `read` changes nothing, `idempotent` may be repeated, `once` must not be.
    `isolated` runs it in a child process that is killed when the call is cancelled.
    `approve` asks a person before each call; it needs a run with `--ask`.
    `needs_trust` keeps it from the workers of a team folder that is not trusted.
    `lacks` returns what is missing for it to work here, or None: a tool that lacks something is not offered.
    """

    def define(function: Callable[P, R], /) -> Tool[P, R]:
        _check(function, effect, isolated=isolated)
        title = name or function.__name__
        if not NAME.fullmatch(title):
            raise UsageError(
                f"Tool {title!r} of {function.__qualname__}: a name is 1 to 64 letters, digits, _ and -; set name=."
            )
        described = docstring.summary(function.__doc__ or "")
        return Tool(title, described, function, effect, isolated, approve, needs_trust, lacks)

    return define if fn is None else define(fn)


def _check(function: Callable[..., Any], effect: str, *, isolated: bool) -> None:
    """Raise UsageError for mistakes that can be found before the annotations are resolved."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise UsageError(f"@tool is for functions, not for {function!r}.")
    where = f"Tool function {function.__qualname__}"
    if effect not in get_args(ToolEffect):
        raise UsageError(f"{where}: effect={effect!r} is not one of {', '.join(get_args(ToolEffect))}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{where} yields values; a tool returns one.")
    is_local = "<locals>" in function.__qualname__ or inspect.ismethod(function)
    if isolated and (function.__module__ == "__main__" or is_local):
        raise UsageError(
            f"{where} is isolated, so another process must be able to import it: "
            "move it to the top level of a module that is not the script itself."
        )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UsageError(f"{where}: parameter {parameter} must be a plain one that can be given by name.")
        if parameter.annotation is parameter.empty and parameter.name in ("self", "cls"):
            bound = f"box.{function.__name__}"
            raise UsageError(
                f"{where} is a method: leave out @tool, and give it with its object: tools=[{bound}], "
                f"or tools=[tool(effect='read')({bound})]."
            )
        if parameter.annotation is parameter.empty:
            raise UsageError(
                f"{where}: parameter {parameter.name!r} has no annotation; write `{parameter.name}: str` or its type."
            )
