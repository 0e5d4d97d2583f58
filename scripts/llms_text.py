"""The pages of docs/ -> llms.txt, for a model that is asked about chargehand: each page with its first sentence."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# chargehand

> Supervisor-worker teams of LLM agents in Python: a model writes a plan as data, code checks it and runs it as
> dataflow, every call is recorded, and the answer cites its sources and says what is missing. After
> `pip install chargehand`, `chargehand demo` shows a whole run without a key.
"""
SECTIONS = {
    "Start": ("README.md", "docs/tutorial.md", "docs/glossary.md"),
    "How to": ("docs/how-to/*.md",),
    "Reference": ("docs/reference/*.md",),
    "Explanation": ("docs/explanation/*.md",),
    "Optional": ("docs/adr/README.md", "CONTRIBUTING.md", "CHANGELOG.md"),
}


def llms_text() -> str:
    """llms.txt as it should be."""
    parts = [HEAD]
    for section, patterns in SECTIONS.items():
        pages = [page for pattern in patterns for page in sorted(ROOT.glob(pattern))]
        parts.append("\n".join([f"## {section}", "", *map(_line, pages), ""]))
    return "\n".join(parts)


def _line(page: Path) -> str:
    title, _, rest = page.read_text(encoding="utf-8").removeprefix("# ").partition("\n")
    without_code = re.sub(r"^```.*?^```$", "", rest, flags=re.DOTALL | re.MULTILINE)
    # The first paragraph that is neither a heading nor a table, a list or a picture.
    prose = next((text for text in without_code.split("\n\n") if re.match(r"\n*[A-Z`*\[(]", text)), "")
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)|\*\*", lambda found: found[1] or "", " ".join(prose.split()))
    sentence = re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].removesuffix(":")
    return f"- [{title}]({page.relative_to(ROOT).as_posix()}): {sentence}"
