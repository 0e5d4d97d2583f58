"""Typed functions become tools a model can call: definition, checked and confined execution, and the ones that ship."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chargehand.tools.calling import call
from chargehand.tools.context import ToolContext
from chargehand.tools.definition import Tool, tool
from chargehand.tools.reading import still_valid

if TYPE_CHECKING:
    BUILTIN: dict[str, Tool]

__all__ = ["BUILTIN", "Tool", "ToolContext", "call", "still_valid", "tool"]


def __getattr__(name: str) -> Any:
    # The shipped tools are loaded at first use.
    if name != "BUILTIN":
        raise AttributeError(f"module 'chargehand.tools' has no attribute {name!r}")
    from chargehand.tools.calculate import calculate
    from chargehand.tools.documents import search_documents
    from chargehand.tools.files import list_files, read_file, search_files
    from chargehand.tools.sql import query_data
    from chargehand.tools.web import fetch_page
    from chargehand.tools.web_search import web_search
    from chargehand.tools.write import write_document

    reading = (read_file, list_files, search_files, calculate, search_documents, query_data)
    shipped = {each.name: each for each in (*reading, fetch_page, web_search, write_document)}
    globals()["BUILTIN"] = shipped
    return shipped
