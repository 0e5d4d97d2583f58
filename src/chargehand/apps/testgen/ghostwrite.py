"""A target becomes test source without a model: what it was seen to do, and properties hypothesis could not break.

All of it is tried in the sandbox. What fails there is not a test but a suspected bug, with the input that shows it.
"""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from chargehand.apps.testgen.in_sandbox.argument_values import SUBJECT
from chargehand.apps.testgen.sandbox import CommandResult, Room, SandboxLimits, Step
from chargehand.apps.testgen.sandbox_command import ABROAD, start_program
from chargehand.values.base import JSON, Value
from chargehand.values.outcome import Finding

CATEGORY = "suspected-bug"
MOST_EXAMPLES = 8
# Of any two of the strings that functions are given, each comes first in a set under one of these.
SEEDS = ("147", "399", "456")
EXAMPLES_S, PROPERTIES_S = 15, 30
# How sure it is that it is a bug: a broken promise, a pair that does not undo, an error on some input.
_PROMISE, _ROUND_TRIP, _ERROR, _LOOKUP = 95, 85, 70, 50
# How long it takes is not what the test is about: neither one call nor making the inputs, on whatever machine.
_SETTINGS = (
    "settings(max_examples=50, derandomize=True, database=None, deadline=None, "
    "suppress_health_check=[HealthCheck.too_slow])"
)

# Names that a test file also uses: a module of such a name is imported under another one.
_TEST_TOOLS = frozenset({"pytest", "given", "st", "settings", "HealthCheck", "typing", "collections"})

Note = Mapping[str, Any]


class GhostwriteJob(Value):
    """What try_function.py gets about a target."""

    module: str
    name: str
    kind: str
    path: str
    line: int
    end_line: int
    # Exceptions its code raises on purpose.
    raises: tuple[str, ...] = ()
    # Short strings its module looks for, such as separators.
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Test source for one target, empty with the reason when there is none; and what looked like bugs."""

    source: str
    why: str
    findings: tuple[Finding, ...]


async def ghostwrite(room: Room, job: GhostwriteJob, paths: Sequence[str]) -> Written:
    """Try the target in the sandbox: examples three times, under different circumstances, and properties."""
    program = start_program("try_function", "try_function.main(*sys.argv[1:])")

    def step(mode: str, seed: str, seconds: int, *options: str) -> Step:
        result = f"{mode}-{seed}.jsonl"
        command = (sys.executable, "-c", program, mode, "../job.json", f"../{result}", *options)
        return Step(command, {"PYTHONHASHSEED": seed, **(ABROAD if options else {})}, result, seconds)

    first, second, third = SEEDS
    steps = [
        step("examples", first, EXAMPLES_S),
        step("examples", second, EXAMPLES_S, "shifted"),
        step("examples", third, EXAMPLES_S),
        step("properties", first, PROPERTIES_S),
    ]
    ended = await room.run(steps, {"job.json": json.dumps(job.to_json())}, SandboxLimits(), paths, go_on=False)
    return judge_notes(job, ended)


def judge_notes(job: GhostwriteJob, runs: Sequence[CommandResult]) -> Written:
    """What to make of the programs' notes, properties last; one that was stopped was the last."""
    reported = [notes_of(run) for run in runs]
    if failed := [note["import_failed"] for notes in reported for note in notes if "import_failed" in note]:
        return Written("", f"import failed: {failed[0]}", ())
    # On another machine such a test would reach the same things, or depend on what this machine is like.
    if reached := [note["reaches"] for notes in reported for note in notes if "reaches" in note]:
        return Written("", f"it was seen to reach {reached[0]}", tuple(_cut_short(job, runs[0], reported[0])))
    cut = [finding for run, notes in zip(runs, reported, strict=True) for finding in _cut_short(job, run, notes)][:1]
    findings = [*cut, *_promises(job, reported[0])]
    if not all(_has_ended(notes) for notes in reported):
        return Written("", cut[0].message if cut else "it ended the program that called it", tuple(findings))
    *tries, properties = reported
    stable = [note for note in tries[0] if "call" in note and all(note in notes for notes in tries[1:])]
    findings += _crashes(job, [*properties, *tries[0]])
    parts = [_examples(job, stable), *_properties(job, properties)]
    source = _with_module("\n\n\n".join(part for part in parts if part), job.module)
    return Written(source, "" if source else _why_not(tries[0], stable), tuple(findings))


def notes_of(ended: CommandResult) -> list[dict[str, Any]]:
    """The notes a program left; an incomplete last line is dropped, and so is what is not a note."""
    found: list[dict[str, Any]] = []
    for line in (ended.result or "").splitlines():
        try:
            # Lone surrogates could be neither recorded nor printed.
            clean = json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace")
        except ValueError:
            continue
        note: JSON = json.loads(clean)
        if isinstance(note, dict):
            found.append(cast("dict[str, Any]", note))
    return found


def _has_ended(notes: Sequence[Note]) -> bool:
    """Whether the program came to its own end."""
    return bool(notes and notes[-1].get("ended"))


# -- bugs ------------------------------------------------------------------------------------------------------------


def suspected_bug(job: GhostwriteJob, message: str, confidence: int, suggestion: str) -> Finding:
    """A finding at the function the job is for."""
    return Finding(
        severity="warning",
        category=CATEGORY,
        path=job.path,
        line=job.line,
        end_line=job.end_line,
        message=message.replace(f"{SUBJECT}.", ""),
        suggestion=suggestion,
        confidence=confidence,
        sources=("testgen",),
    )


def _cut_short(job: GhostwriteJob, ended: CommandResult, notes: Sequence[Note]) -> list[Finding]:
    """The call during which a limit was broken or the interpreter died."""
    tried = [note["trying"] for note in notes if "trying" in note]
    if not tried or (ended.stopped is None and _has_ended(notes)):
        return []
    how = {
        "time": "did not end in time",
        "memory": "used more memory than it may",
        "processes": "started more processes than it may",
        "output": "printed more than it may",
        None: f"ended Python itself (code {ended.code})",
    }[ended.stopped]
    return [suspected_bug(job, f"{tried[-1]} {how}.", _ERROR, "Bound what one call may take, or reject such input.")]


def _promises(job: GhostwriteJob, notes: Sequence[Note]) -> list[Finding]:
    broken = [note for note in notes if "broken_promise" in note]
    advice = "Correct the code or the docstring: they disagree."
    return [
        suspected_bug(
            job, f"The docstring says {b['broken_promise']} gives {b['want']}; it gives {b['got']}.", _PROMISE, advice
        )
        for b in broken
    ]


def _crashes(job: GhostwriteJob, notes: Sequence[Note]) -> list[Finding]:
    """One for each kind of error; properties come first, because their inputs are the smallest."""
    found: dict[str, Finding] = {}
    for note in notes:
        error = str(note.get("failed") or note.get("crash") or "")
        kind = error.partition(":")[0]
        if not error or kind in found:
            continue
        call = note.get("example") or note.get("call") or job.name
        if note.get("property") == "roundtrip":
            if kind == "AssertionError":
                message = f"{call} does not come back the same after the round trip: {error.partition(': ')[2]}"
                found[kind] = suspected_bug(
                    job, message[:500], _ROUND_TRIP, "One of the pair loses or changes something."
                )
            continue
        sure = _LOOKUP if kind in ("KeyError", "LookupError", "TypeError", "NotImplementedError") else _ERROR
        advice = f"Handle that input, or raise an error that says what is wrong with it (not {kind})."
        found[kind] = suspected_bug(job, f"{call} raises {error}", sure, advice)
    return list(found.values())


# -- tests -----------------------------------------------------------------------------------------------------------


def _examples(job: GhostwriteJob, notes: Sequence[Note]) -> str:
    """What calls gave, every time, as assertions."""
    gave = [note for note in notes if "gives" in note]
    if all(note["gives"] == "None" for note in gave):
        gave = []
    refused = [note for note in notes if "raises" in note]
    title = _title(job.name)
    tests: list[str] = []
    if gave:
        lines = [f"    assert {note['call']} {_comparison(note)}" for note in gave[:MOST_EXAMPLES]]
        tests.append("\n".join([f"def test_{title}_gives_what_it_gave():", *lines]))
    for kind in dict.fromkeys(note["raises"] for note in refused):
        calls = [note["call"] for note in refused if note["raises"] == kind][:3]
        lines = [f"    with pytest.raises({kind}):\n        {call}" for call in calls]
        tests.append("\n".join([f"def test_{title}_raises_{_snake(kind.rpartition('.')[2])}():", *lines]))
    if not tests:
        return ""
    text = "\n\n\n".join(tests)
    return f"import pytest\n\n\n{text}" if "pytest." in text else text


def _comparison(note: Note) -> str:
    value = note["gives"]
    if value in ("None", "True", "False"):
        return f"is {value}"
    return f"== pytest.approx({value})" if note.get("approximate") else f"== {value}"


def _with_module(source: str, module: str) -> str:
    """The text with the module's import, and the name that gives it in the place of SUBJECT."""
    if not source:
        return ""
    tree = ast.parse(source)
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    used |= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)} | _TEST_TOOLS | set(dir(builtins))
    alias = module.rpartition(".")[2]
    while alias in used or keyword.iskeyword(alias):
        alias += "_module"
    named = "" if alias == module else f" as {alias}"
    return f"import {module}{named}\n{source.replace(SUBJECT, alias)}"


def _properties(job: GhostwriteJob, notes: Sequence[Note]) -> Iterable[str]:
    """The ghostwriter's text, with settings that make it try the same inputs every time."""
    titles = {"crash": f"test_{_title(job.name)}_takes_any_input", "roundtrip": f"test_{_title(job.name)}_round_trip"}
    for note in notes:
        if note.get("property") not in titles or "failed" in note:
            continue
        tree = ast.parse(note["code"])
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                node.name = titles[note["property"]]
                node.decorator_list.insert(0, ast.parse(_SETTINGS, mode="eval").body)
            elif isinstance(node, ast.ImportFrom) and node.module == "hypothesis":
                node.names += [ast.alias("settings"), ast.alias("HealthCheck")]
        kept = [node for node in tree.body if not (isinstance(node, ast.Import) and node.names[0].asname == SUBJECT)]
        yield "\n\n".join(ast.unparse(node) for node in kept)


def _why_not(notes: Sequence[Note], stable: Sequence[Note]) -> str:
    if missing := [note["no_inputs"] for note in notes if "no_inputs" in note]:
        return f"no inputs could be made: {missing[0]}"
    calls = [note for note in notes if "call" in note]
    if not calls:
        return "what it takes could not be made"
    if missing := [note["missing"] for note in calls if "missing" in note]:
        return f"it needs what the sandbox does not have: {missing[0]}"
    if all("crash" in note for note in calls):
        return f"every call that was tried raised an error: {calls[0]['crash']}"
    if not stable:
        return "its results differ from run to run, or with the day or the place"
    if any("unstable" in note for note in calls):
        return "its results cannot be written down"
    return "it returns nothing to compare"


def _title(name: str) -> str:
    return _snake(name.replace(".", "_"))


def _snake(name: str) -> str:
    """`ParseError` as parse_error."""
    spaced = "".join(
        f"_{c.lower()}" if c.isupper() and at and name[at - 1].islower() else c for at, c in enumerate(name)
    )
    return spaced.lower()
