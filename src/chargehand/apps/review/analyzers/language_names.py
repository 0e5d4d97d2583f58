"""A file's name and its first line -> the language it is written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from chargehand.apps.review.analyzers.source_files import is_python

# Language -> endings and whole names, in lower case. Any other ending counts as its own language: `.zig`.
_NAMES: Mapping[str, str] = {
    "C": ".c .h",
    "C#": ".cs .csx",
    "C++": ".cc .cpp .cxx .hh .hpp .hxx",
    "CSS": ".css .less .sass .scss",
    "Batch": ".bat .cmd",
    "Clojure": ".clj .cljc .cljs",
    "Dart": ".dart",
    "Docker": ".dockerfile dockerfile containerfile",
    "Elixir": ".ex .exs",
    "Erlang": ".erl .hrl",
    "F#": ".fs .fsi .fsx",
    "Go": ".go",
    "Groovy": ".gradle .groovy jenkinsfile",
    "HTML": ".ejs .hbs .htm .html .j2 .jinja .jinja2 .mustache .xhtml",
    "Haskell": ".hs .lhs",
    "Java": ".java",
    "JavaScript": ".cjs .js .jsx .mjs",
    "Julia": ".jl",
    "Kotlin": ".kt .kts",
    "Lua": ".lua",
    "Make": ".mk gnumakefile makefile",
    "OCaml": ".ml .mli",
    "Objective-C": ".m .mm",
    "PHP": ".php .phtml",
    "Perl": ".pl .pm .t",
    "PowerShell": ".ps1 .psd1 .psm1",
    "R": ".r",
    "Ruby": ".gemspec .rake .rb gemfile rakefile",
    "Rust": ".rs",
    "SQL": ".sql",
    "Scala": ".sc .scala",
    "Shell": ".bash .bats .fish .ksh .sh .zsh",
    "Svelte": ".svelte",
    "Swift": ".swift",
    "Terraform": ".hcl .tf .tfvars",
    "TypeScript": ".cts .mts .ts .tsx",
    "Vue": ".vue",
}
_LANGUAGES = {name: language for language, names in _NAMES.items() for name in names.split()}
# Prose and data: analyzers are for code.
_OTHER = frozenset(
    {".adoc", ".cfg", ".conf", ".csv", ".editorconfig", ".env", ".gitattributes", ".gitignore", ".gitmodules", ".in"}
    | {".ini", ".ipynb", ".json", ".json5", ".jsonc", ".jsonl", ".lock", ".log", ".markdown", ".md", ".mdx", ".po"}
    | {".pot", ".properties", ".rst", ".snap", ".svg", ".tex", ".toml", ".tsv", ".txt", ".typed", ".xml", ".yaml"}
    | {".yml"}
)
# The form of an ending that counts as a language.
_ENDING = re.compile(r"\.[a-z][a-z0-9_+-]{0,11}")
_INTERPRETER = re.compile(rb"#![ \t]*(?:\S*/)?([a-z]+)[\d.]*(?:[ \t]+(?:-\S+[ \t]+)*([a-z]+))?")
_BY_INTERPRETER = {
    **{"node": "JavaScript", "deno": "TypeScript", "ruby": "Ruby", "perl": "Perl", "php": "PHP", "lua": "Lua"},
    **dict.fromkeys(("sh", "bash", "dash", "ksh", "zsh", "fish"), "Shell"),
}


def language(path: str, root: Path) -> str:
    """The language, by name or first line; the ending if that is unknown; "" for prose and data."""
    if is_python(path, root):
        return "Python"
    name = PurePosixPath(path).name.lower()
    suffix = PurePosixPath(name).suffix
    if known := _LANGUAGES.get(name) or _LANGUAGES.get(suffix):
        return known
    if suffix:
        return suffix if suffix not in _OTHER and _ENDING.fullmatch(suffix) else ""
    return "" if name in _OTHER else _by_first_line(root / path)


def _by_first_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = _INTERPRETER.match(file.read(120))
    except (OSError, ValueError):
        return ""
    if found is None:
        return ""
    program = (found[2] if found[1] == b"env" else found[1]) or b""
    return _BY_INTERPRETER.get(program.decode(), "")
