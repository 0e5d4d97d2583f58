"""Typed functions become tools a model can call: definition, checked and confined execution, and the shipped tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from chargehand.tools.definition import Tool, tool
from chargehand.values.lazy_names import lazy_names

if TYPE_CHECKING:
    from chargehand.tools.call_tool import call
    from chargehand.tools.recorded_reads import still_valid
    from chargehand.tools.tool_context import ToolContext

# Checking a team does not load the code that calls its tools.
__getattr__ = lazy_names(
    __name__, {"call": "call_tool", "still_valid": "recorded_reads", "ToolContext": "tool_context"}
)

__all__ = ["BUILTIN", "Tool", "ToolContext", "call", "still_valid", "tool"]


class Shipped(Mapping[str, Tool]):
    """Tools by name; a team's `own` tools win. The module of a shipped tool is imported at its first use."""

    _modules = {  # noqa: RUF012 -- never written to
        "read_file": "files",
        "list_files": "files",
        "search_files": "files",
        "calculate": "calculate",
        "search_documents": "documents",
        "query_data": "sql",
        "fetch_page": "web",
        "web_search": "web_search",
        "write_document": "write_document",
    }

    # Tools that code calls for a worker; no team lists them.
    _called_by_code = {"read_material": "files"}  # noqa: RUF012 -- never written to

    def __init__(self, own: Mapping[str, Tool]) -> None:
        self._own = own

    def called_by_code(self, held: Mapping[str, Tool]) -> dict[str, Tool]:
        """The tools that code calls for workers that have these tools."""
        return {name: self[name] for name in self._called_by_code} if "read_file" in held else {}

    def beside(self, own: Mapping[str, Tool]) -> Shipped:
        return Shipped({**self._own, **own})

    def __getitem__(self, name: str) -> Tool:
        if name in self._own:
            return self._own[name]
        module = self._modules.get(name) or self._called_by_code[name]
        return getattr(import_module(f"chargehand.tools.{module}"), name)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._modules, *self._own]))

    def __len__(self) -> int:
        return len(self._modules.keys() | self._own.keys())


BUILTIN = Shipped({})
