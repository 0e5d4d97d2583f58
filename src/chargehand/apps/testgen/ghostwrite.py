"""A target becomes test source without a model: its observed results, and properties that hypothesis could not break.

All tests are tried in the sandbox, on the function and on its mutants. A test that detects no mutant is left out. An
error that occurs again when it is repeated is a suspected bug with a reproduction.
"""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from chargehand.apps.testgen.example_tests import choose_examples, snake, write_examples
from chargehand.apps.testgen.in_sandbox.argument_values import MODULES, SUBJECT
from chargehand.apps.testgen.in_sandbox.mutants import LONGEST_TRIAL_S
from chargehand.apps.testgen.sandbox import CommandResult, Room, SandboxLimits, Step
from chargehand.apps.testgen.sandbox_command import ABROAD, start_program
from chargehand.values.base import JSON, Value
from chargehand.values.outcome import Finding

CATEGORY = "suspected-bug"
# For any two strings given to functions, each comes first in a set with at least one of these hash seeds.
SEEDS = ("147", "399", "456")
EXAMPLES_S, PROPERTIES_S = 15, 45
# Confidence that it is a bug: a broken promise, a failed round trip, an error on some input.
_PROMISE, _ROUND_TRIP, _ERROR = 95, 85, 70
# Inputs that functions are hardly ever meant for.
_EXTREME = re.compile(r"\b(nan|inf)\b|\d{16,}|e[+-]?\d{2,}")
# The test is not about time, neither of a call nor of making inputs.
_SETTINGS = (
    "settings(max_examples=50, derandomize=True, database=None, deadline=None, "
    "suppress_health_check=[HealthCheck.too_slow])"
)

# Names that a test file also uses: a module with one of these names is imported under another name.
_TEST_TOOLS = frozenset({"pytest", "given", "st", "settings", "HealthCheck", "typing", "collections"})

# What a program notes before the first call.
_IMPORT = "import "

Note = Mapping[str, Any]


class GhostwriteJob(Value):
    """What try_function.py gets about a target."""

    module: str
    name: str
    kind: str
    path: str
    line: int
    end_line: int
    # Exceptions that its code raises on purpose.
    raises: tuple[str, ...] = ()
    # Short strings its module looks for, such as separators.
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """Test source for one target, or an empty text with the reason; and suspected bugs."""

    source: str
    why: str
    findings: tuple[Finding, ...]


async def ghostwrite(room: Room, job: GhostwriteJob, paths: Sequence[str]) -> Written:
    """Try the target in the sandbox: examples three times under different conditions, then on mutants."""
    order = job.to_json()
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
        step("mutants", first, PROPERTIES_S),
    ]
    ended = await room.run(steps, {"job.json": json.dumps(order)}, SandboxLimits(), paths, go_on=False)
    written = judge_notes(job, ended)
    crashes = crash_candidates(ended)
    cut = next((call for run in ended[: len(SEEDS)] if (call := _cut_call(run, notes_of(run)))), None)
    if not crashes and cut is None:
        return written
    calls = [*crashes, *([cut] if cut and not cut.startswith(_IMPORT) else [])]
    again = json.dumps({**order, "reproduce": list(dict.fromkeys(calls))})
    (repeated,) = await room.run([step("reproduce", third, EXAMPLES_S)], {"job.json": again}, SandboxLimits(), paths)
    notes = notes_of(repeated)
    found = (*_cut_short(job, repeated, notes), *written.findings, *_crashes(job, crashes, notes))
    return replace(written, findings=found)


def judge_notes(job: GhostwriteJob, runs: Sequence[CommandResult]) -> Written:
    """The result from the notes of the programs, mutants and properties last. A stopped program was the last one."""
    reported = [notes_of(run) for run in runs]
    if failed := [note["import_failed"] for notes in reported for note in notes if "import_failed" in note]:
        return Written("", f"import failed: {failed[0]}", ())
    # On another machine this test would reach the same things, or depend on the machine.
    if reached := [note["reaches"] for notes in reported for note in notes if "reaches" in note]:
        return Written("", f"it was seen to reach {reached[0]}", ())
    *tries, changed = reported if len(reported) == len(SEEDS) + 1 else [*reported, []]
    findings = [*_promises(job, tries), *_round_trips(job, changed)]
    if not all(_has_ended(notes) for notes in tries):
        cut = [how for run, notes in zip(runs, tries, strict=False) if (how := _how_cut(run, notes))]
        return Written("", cut[0] if cut else "it ended the program that called it", tuple(findings))
    # A test of a call about which the docstring says something else would state a suspected bug.
    usable = [note for note in tries[0] if ("gives" in note or "raises" in note) and "disputed" not in note]
    stable = [note for note in usable if all(note in notes for notes in tries[1:])]
    mutants = [note for note in changed if "mutant" in note]
    parts = [_examples(job, choose_examples(stable, mutants)), *_properties(job, changed)]
    source = _with_module("\n\n\n".join(part for part in parts if part), job.module)
    return Written(source, "" if source else _why_not(tries[0], stable, mutants), tuple(findings))


def notes_of(ended: CommandResult) -> list[dict[str, Any]]:
    """The notes a program left; an incomplete last line, and anything that is not a note, is dropped."""
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
    """Whether the program ended by itself."""
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


def reproduction(job: GhostwriteJob, call: str) -> str:
    """A command that shows the bug again."""
    needed = _modules_in(call)
    imports = "; ".join([f"import {job.module} as _m", *(f"import {name}" for name in needed)])
    return _command(f"{imports}; print({call.replace(SUBJECT, '_m')})")


def _command(code: str) -> str:
    return f"python -c {shlex.quote(code)}"


def _cut_call(ended: CommandResult, notes: Sequence[Note]) -> str | None:
    """The call, or the import, during which a limit was broken or the interpreter died."""
    tried = [str(note["trying"]) for note in notes if "trying" in note]
    return None if not tried or (ended.stopped is None and _has_ended(notes)) else tried[-1]


def _how_cut(ended: CommandResult, notes: Sequence[Note]) -> str:
    """A sentence about that call; empty if there is none."""
    call = _cut_call(ended, notes)
    if call is None:
        return ""
    how = {
        "time": "did not end in time",
        "call": f"did not end within {LONGEST_TRIAL_S} s of processor time",
        "memory": "used more memory than it may",
        "processes": "started more processes than it may",
        "output": "printed more than it may",
        None: f"ended Python itself (code {ended.code})",
    }[ended.stopped]
    return f"{call.replace(f'{SUBJECT}.', '')} {how}."


def _cut_short(job: GhostwriteJob, ended: CommandResult, notes: Sequence[Note]) -> list[Finding]:
    """A bug if it happened when the call was repeated in a fresh process."""
    call = _cut_call(ended, notes)
    if call is None:
        return []
    shown = _command(call) if call.startswith(_IMPORT) else reproduction(job, call)
    advice = f"Bound what one call may take, or reject such input.\nReproduce: {shown}"
    return [suspected_bug(job, _how_cut(ended, notes), _ERROR, advice)]


def _promises(job: GhostwriteJob, tries: Sequence[Sequence[Note]]) -> list[Finding]:
    """Statements of the docstring that every run contradicted."""
    broken = [note for note in tries[0] if "broken_promise" in note]
    kept = [note for note in broken if all(note in notes for notes in tries[1:])]
    advice = "Correct the code or the docstring: they disagree."
    found: list[Finding] = []
    for note in kept:
        call = note["broken_promise"]
        message = f"The docstring says {call} gives {note['want']}; it gives {note['got']}. No example asserts this."
        shown = _command(f"from {job.module} import *; print({call})")
        found.append(suspected_bug(job, message, _PROMISE, f"{advice}\nReproduce: {shown}"))
    return found


def _round_trips(job: GhostwriteJob, notes: Sequence[Note]) -> list[Finding]:
    found: list[Finding] = []
    for note in notes:
        if note.get("property") == "roundtrip" and "back" in note:
            message = f"{note['example']} does not come back the same after the round trip: it gives {note['got']}"
            advice = "One of the pair loses or changes something."
            found.append(
                suspected_bug(
                    job, message[:500], _ROUND_TRIP, f"{advice}\nReproduce: {reproduction(job, note['back'])}"
                )
            )
    return found


def crash_candidates(runs: Sequence[CommandResult]) -> dict[str, str]:
    """Calls with an unintended error, one for each kind of error. Those from properties are the smallest."""
    found: dict[str, str] = {}
    for notes in reversed([notes_of(run) for run in runs]):
        for note in notes:
            error = str(note.get("failed") or note.get("crash") or "")
            call = str(note.get("example") or note.get("call") or "")
            kind = error.partition(":")[0]
            if not error or note.get("property") == "roundtrip" or _EXTREME.search(call):
                continue
            if kind not in [known.partition(":")[0] for known in found.values()]:
                found[call] = error
    return found


def _crashes(job: GhostwriteJob, crashes: Mapping[str, str], repeated: Sequence[Note]) -> list[Finding]:
    """Crashes that occurred again with only the required arguments."""
    found: list[Finding] = []
    for note in repeated:
        kind = crashes[note["of"]].partition(":")[0] if "of" in note else ""
        if not kind or str(note.get("crash", "")).partition(":")[0] != kind or not note.get("accident"):
            continue
        given = _arguments(note["call"])
        # Not reported: two arguments that do not fit each other, and a given zero as a divisor.
        if (kind == "IndexError" and len(given) > 1) or (kind == "ZeroDivisionError" and any(map(_is_zero, given))):
            continue
        advice = f"Handle that input, or raise an error that says what is wrong with it (not {kind})."
        message = f"{note['call']} raises {note['crash']}"
        found.append(suspected_bug(job, message, _ERROR, f"{advice}\nReproduce: {reproduction(job, note['call'])}"))
    return found


def _arguments(call: str) -> list[ast.expr]:
    node = ast.parse(call, mode="eval").body
    return [*node.args, *(each.value for each in node.keywords)] if isinstance(node, ast.Call) else []


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str | bytes) and node.value == 0


# -- tests -----------------------------------------------------------------------------------------------------------


def _examples(job: GhostwriteJob, chosen: Sequence[Note]) -> str:
    """Repeated results of calls, as assertions."""
    text = write_examples(job.name, chosen)
    if not text:
        return ""
    needed = [*(["pytest"] if "pytest." in text else []), *_modules_in(text)]
    return "\n".join([*(f"import {name}" for name in needed), "", "", text])


def _modules_in(text: str) -> list[str]:
    """The standard library's modules that a text uses."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    return sorted(used & MODULES.keys())


def _with_module(source: str, module: str) -> str:
    """The text with the module's import, and with its name in place of SUBJECT."""
    if not source:
        return ""
    tree = ast.parse(source)
    used = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name)}
    used |= {each.arg for each in ast.walk(tree) if isinstance(each, ast.arg)} | _TEST_TOOLS | set(dir(builtins))
    package, _, last = module.rpartition(".")
    alias = last
    while alias in used or keyword.iskeyword(alias):
        alias += "_module"
    named = "" if alias == last else f" as {alias}"
    line = f"from {package} import {last}{named}" if package else f"import {last}{named}"
    return f"{line}\n{_other_imports(tree, package)}{source.replace(SUBJECT, alias)}"


def _other_imports(tree: ast.Module, package: str) -> str:
    """Modules of the same package whose full names occur in values."""
    top = package.partition(".")[0]
    chains = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} if top else set[str]()
    needed = {
        chain.rpartition(".")[0] for chain in chains if re.fullmatch(rf"{re.escape(top)}(\.\w+)*\.[A-Z]\w*", chain)
    }
    return "".join(f"import {name}\n" for name in sorted(needed))


def _properties(job: GhostwriteJob, notes: Sequence[Note]) -> Iterable[str]:
    """The ghostwriter's text, with settings that make it try the same inputs every time.

    A property that can fail only by an exception is named a smoke test. It is kept only if no example detects as much.
    """
    title = snake(job.name.replace(".", "_"))
    titles = {
        "roundtrip": f"test_{title}_comes_back_the_same_after_the_round_trip",
        "idempotent": f"test_{title}_twice_is_the_same_as_once",
    }
    if any("smoke" in note for note in notes):
        titles["crash"] = f"test_smoke_{title}_raises_nothing_unexpected"
    for note in notes:
        if note.get("property") not in titles or "code" not in note:
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


def _why_not(notes: Sequence[Note], stable: Sequence[Note], mutants: Sequence[Note]) -> str:
    calls = [note for note in notes if "call" in note]
    if not calls and (missing := [note["no_inputs"] for note in notes if "no_inputs" in note]):
        return f"no inputs could be made: {missing[0]}"
    if not calls:
        return "what it takes could not be made"
    if missing := [note["missing"] for note in calls if "missing" in note]:
        return f"it needs what the sandbox does not have: {missing[0]}"
    if all("crash" in note for note in calls):
        return f"every call that was tried raised an error: {calls[0]['crash']}"
    if all("disputed" in note for note in calls):
        return "its docstring says something else about what was tried"
    if all(note.get("gives") == "None" for note in calls):
        return "it returns nothing to compare"
    if stable and not mutants:
        return "no changed version of it could be made, so that nothing shows what a test of it is worth"
    if stable:
        return "no call that was tried tells it from a changed version of it"
    if any("unstable" in note for note in calls):
        return "its results cannot be written down"
    return "its results differ from run to run, or with the day or the place"
