"""The commands' own help and the schemas -> the pages under docs/reference: `python -m scripts.reference`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from chargehand.cli import COMMANDS, cli
from chargehand.cli.schemas import NAMES, schema_of
from scripts.llms_text import ROOT, llms_text
from scripts.reference_events import events_reference

HEAD = """# Command line

Made from the commands' own help by `make docs`; do not edit.
"""


def cli_reference() -> str:
    """docs/reference/cli.md as it should be."""
    with _context(None, cli, "chargehand") as top:
        pages = [HEAD, _page(top)]
        for name in COMMANDS:
            command = cli.get_command(top, name)
            assert command is not None
            with _context(top, command, name) as ctx:
                pages.append(_page(ctx))
                if isinstance(command, click.Group):
                    for sub, each in command.commands.items():
                        with _context(ctx, each, sub) as inner:
                            pages.append(_page(inner))
    return "\n".join(pages)


def write_reference(folder: Path) -> None:
    """Write cli.md, events.md and the schemas to the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cli.md").write_text(cli_reference(), encoding="utf-8")
    (folder / "events.md").write_text(events_reference(), encoding="utf-8")
    (folder / "schemas").mkdir(exist_ok=True)
    for name in NAMES:
        text = json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"
        (folder / "schemas" / f"{name}.json").write_text(text, encoding="utf-8")


def _context(parent: click.Context | None, command: click.Command, name: str) -> click.Context:
    # A width of its own, so that the page does not depend on the terminal it was made in.
    settings: dict[str, Any] = {"help_option_names": ["-h", "--help"], "terminal_width": 100, "max_content_width": 100}
    return click.Context(command, parent=parent, info_name=name, **settings)


def _page(ctx: click.Context) -> str:
    return f"## {ctx.command_path}\n\n```text\n{ctx.command.get_help(ctx).rstrip()}\n```\n"


if __name__ == "__main__":
    write_reference(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference"))
    (ROOT / "llms.txt").write_text(llms_text(), encoding="utf-8")
