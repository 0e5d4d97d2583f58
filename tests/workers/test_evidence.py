"""What a model's result rests on: nothing and echoes are not done, false sources go, own knowledge is marked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from chargehand.engine.engine_session import EngineInputs
from chargehand.engine.local.engine import LocalEngine
from chargehand.events import Event
from chargehand.models import Attribution
from chargehand.models.resolve import Models
from chargehand.record.memory_journal import MemoryJournal, MemoryStore
from chargehand.record.replay import replay
from chargehand.testing import run_virtual
from chargehand.tools import BUILTIN, ToolContext, tool
from chargehand.values.effect import ModelCall, ToolResult
from chargehand.values.message import Reply, ToolRequest
from chargehand.values.outcome import Claim, Finding, Outcome, done
from chargehand.values.plan import Task
from chargehand.values.request import Material
from chargehand.workers import Assignment
from chargehand.workers.agent import Agent
from chargehand.workers.check_result import APOLOGY
from chargehand.workers.check_sources import Grounds
from chargehand.workers.refuse_or_call_tool import AgentTool
from chargehand.workers.worker_answer import Answer
from tests.kernel import MODEL, SMALL_MODEL, FunctionModel, stored

TASK = Task(
    id="t2",
    worker="ann",
    instruction="Read the notes and say how many seats the hall in Bergen has.",
    success_criterion="The number of seats is stated.",
)
NOTES = "Halls of the west coast.\nThe hall in Bergen seats 310 people.\nThe hall in Voss is closed.\n"


@tool(effect="read")
def find_page() -> str:
    """Finds a page."""
    return "See https://halls.example/bergen for the hall."


TOOLS = {name: BUILTIN[name] for name in ("read_file", "list_files", "search_files", "search_documents")}
TOOLS["find_page"] = find_page
# What code calls for an agent is not among the tools it is offered.
BY_CODE = {**TOOLS, **BUILTIN.called_by_code(TOOLS)}


def answer(output: Any = "It has 310 places.", *, sources: Any = None, **fields: Any) -> str:
    claims = (
        [] if sources is None else [{"statement": "Bergen seats 310 people.", "confidence": 95, "sources": sources}]
    )
    return json.dumps({"summary": "Seats.", "output": output, "claims": claims, "confidence": 95, **fields})


def call(name: str, **arguments: Any) -> Reply:
    return Reply(tool_calls=(ToolRequest(id="c1", name=name, arguments=arguments),), stop="tools")


READ = call("read_file", path="notes.md")


def work(
    *replies: Reply | str,
    material: Path | None = None,
    tools: tuple[str, ...] = tuple(TOOLS),
    inputs: tuple[Outcome, ...] = (),
    store: MemoryStore | None = None,
    **fields: Any,
) -> tuple[Outcome, list[ModelCall], list[Event]]:
    """What comes of these replies, the calls that were made and the record."""
    waiting, store = list(replies), store or MemoryStore()

    async def reply(call: ModelCall, attribution: Attribution) -> Reply:
        said = waiting.pop(0)
        return Reply(text=said) if isinstance(said, str) else said

    model, given, recorded = FunctionModel(reply), fields.pop("task", {}), fields.pop("replay", None)
    handled = BY_CODE if fields.pop("shows", False) else TOOLS
    held = {name: AgentTool(spec=TOOLS[name].spec, effect="read") for name in tools}
    agent = Agent(
        "ann",
        "Finds.",
        fields.pop("prompt", ""),
        dict.fromkeys((None, "small", "medium", "large"), fields.pop("model", MODEL)),
        tools=held,
        material=("notes.md",) if material else (),
        **fields,
    )
    context = ToolContext(material=(Material(name="notes.md", path=str(material)),) if material else ())
    task = TASK.model_copy(update={"depends_on": tuple(outcome.task for outcome in inputs), **given})
    assignment = Assignment(task, 1, {each.task: each for each in inputs}, tasks=frozenset({"t1", "t2", "t3", "hall"}))

    async def main() -> Outcome:
        models = Models({}, {}, {"model": model, "model-1b": model})
        inputs = EngineInputs(
            run="run", journal=MemoryJournal(store), models=models, tools=handled, context=context, replay=recorded
        )
        async with LocalEngine(inputs) as local:
            return await agent.work(assignment, local)

    outcome, _ = run_virtual(main())
    assert not waiting
    return outcome, [asked for asked, _, _ in model.asked], stored(store)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text(NOTES)
    return path


def kind(outcome: Outcome) -> str | None:
    return outcome.error.kind if outcome.error else None


# -- a result ----------------------------------------------------------------------------------------------------------

READERS = ("read_file", "list_files", "search_files")
SUMMARY_ALONE = json.dumps({"summary": "The hall was looked at.", "output": "", "claims": [], "findings": []})
ECHO = answer("Read the notes and say how many seats the hall in Bergen has.")


@pytest.mark.parametrize("said", [SUMMARY_ALONE, ECHO, '{"summary": "Looked at."}', answer({"task": TASK.instruction})])
@pytest.mark.parametrize("rule", ["normal", "strict"])
def test_a_result_that_says_nothing_was_done(said: str, rule: Any) -> None:
    """Empty parts, a summary alone and the instruction again are asked for once more, then failed."""
    outcome, calls, _ = work(said, said, evidence=rule)
    assert (outcome.status, kind(outcome), len(calls)) == ("failed", "criterion_not_met", 2)
    assert "holds no result" in calls[1].messages[-1].text


def test_a_result_after_the_re_ask_is_done() -> None:
    """The one re-ask of the attempt says what is missing; what comes then counts."""
    outcome, calls, _ = work(SUMMARY_ALONE, answer())
    assert (outcome.status, outcome.output, len(calls)) == ("done", "It has 310 places.", 2)


def test_an_instruction_echoed_as_plain_text_was_done() -> None:
    """Words without the agreed shape are held to the same."""
    outcome, _, _ = work(TASK.instruction, TASK.instruction.upper())
    assert (outcome.status, kind(outcome)) == ("failed", "criterion_not_met")


def test_a_criterion_echoed_as_a_result_was_done() -> None:
    """A small model says that the criterion is met and gives no result; a short criterion may be in any result."""
    long = "The number of seats of the hall is correctly identified."
    outcome, _, _ = work(long, long, task={"success_criterion": long})
    assert (outcome.status, kind(outcome)) == ("failed", "criterion_not_met")
    assert work("A number.", task={"success_criterion": "A number."})[0].ok


def test_an_echo_adds_fewer_than_three_words_of_its_own() -> None:
    """With three it is a result, and with less than four fifths of the instruction too."""
    words = TASK.instruction.split()
    assert work(answer(" ".join([*words, "indeed", "yes"])), answer())[0].output == "It has 310 places."
    assert work(answer(" ".join([*words, "about", "310", "people"])))[0].status == "done"
    assert work(answer(" ".join(words[:8])))[0].status == "done"


def test_a_question_said_again_with_a_figure_was_no_result() -> None:
    """A short answer says its question again; the figure in it is what was asked for."""
    given = {"instruction": "Count the seats that are listed for the hall in Bergen."}
    assert work("The seats that are listed for the hall in Bergen: count 310.", task=given)[0].ok


@pytest.mark.parametrize("said", ["Ann Dahl cleans the hall in Bergen.", "The porter cleans the hall in Bergen."])
def test_a_question_answered_in_its_own_words_was_no_result(said: str) -> None:
    """The name in it is what was asked for; the question alone is still an echo."""
    asked = {"instruction": "Who cleans the hall in Bergen?"}
    assert work(said, task=asked)[0].output == said
    assert kind(work(asked["instruction"], asked["instruction"], task=asked)[0]) == "criterion_not_met"


@pytest.mark.parametrize(
    "said",
    [
        "I'm sorry, but I can't help with that.",
        "Sorry, I cannot open files.",
        "I apologize, but as a model I am unable to read the notes.",
        "Unfortunately, I don't have access to the notes.",
        "As an AI language model, I cannot look this up.",
    ],
)
def test_an_apology_was_a_result(said: str) -> None:
    """It is sent back once; then the task has failed, and its error says why."""
    outcome, calls, _ = work(said, "It has 310 places.")
    assert (outcome.status, outcome.output) == ("done", "It has 310 places.")
    assert APOLOGY in calls[1].messages[-1].text
    outcome, _, _ = work(said, said)
    assert kind(outcome) == "criterion_not_met"
    assert outcome.error is not None
    assert APOLOGY in outcome.error.message


@pytest.mark.parametrize(
    ("said", "task"),
    [
        ("I am sorry, but I cannot come on Friday.", {"instruction": "Write an apology to Ms. Lund."}),
        ("Unfortunately, the hall in Bergen has 310 seats only.", {}),
        ("I'm sorry, but I can't count the seats of Voss. " + "Bergen has 310 of them. " * 20, {}),
    ],
)
def test_what_only_sounds_like_an_apology_is_a_result(said: str, task: dict[str, str]) -> None:
    """An apology that was asked for, a fact that is a pity, and a long text that begins with one."""
    assert work(said, task=task)[0].status == "done"


@pytest.mark.parametrize(
    "said", ["Der Saal in Bergen hat 310 Plätze.", "卑尔根的大厅有 310 个座位。", "В зале 310 мест."]
)
def test_a_result_in_another_language_is_kept_as_it_is(said: str) -> None:
    """It is a result; what reads it may ask for another language."""
    outcome, calls, _ = work(said)
    assert (outcome.status, outcome.output, len(calls)) == ("done", said, 1)


def test_a_small_model_is_not_offered_what_reads_the_material_in_its_prompt(notes: Path) -> None:
    """It would read the same once more; a larger one, or one whose material is too long, has all tools."""
    said = "Nobody. Has. Counted. Them."
    _, [call], _ = work(said, material=notes, model=SMALL_MODEL, shows=True)
    assert [spec.name for spec in call.tools] == [*(name for name in TOOLS if name not in READERS), "escalate"]
    for fields in ({"model": MODEL}, {"model": SMALL_MODEL, "most_material": 10}):
        _, [call], _ = work(said, material=notes, shows=True, **fields)
        assert "read_file" in [spec.name for spec in call.tools]


def test_claims_alone_become_the_output() -> None:
    """Whether the output is empty or left out."""
    claims = [{"statement": "Bergen seats 310."}, {"statement": "Voss is closed."}]
    for said in ({"summary": "s", "claims": claims}, {"summary": "s", "output": None, "claims": claims}):
        assert work(json.dumps(said))[0].output == "- Bergen seats 310.\n- Voss is closed."
    assert work(json.dumps({"summary": "s", "claims": claims[:1]}))[0].output == "Bergen seats 310."


def test_no_findings_are_a_result_only_where_they_were_asked_for() -> None:
    """The worker's words or its task name them."""
    none = json.dumps({"summary": "Nothing is wrong.", "output": "", "findings": []})
    assert work(none, prompt="Report each problem as one finding.")[0].status == "done"
    assert work(none, task={"instruction": "Look for errors and give findings."})[0].status == "done"
    assert kind(work(none, none)[0]) == "criterion_not_met"


def test_an_empty_output_that_its_schema_allows_is_a_result() -> None:
    """A list of nothing may be the answer."""
    outcome, _, _ = work(answer([]), output_schema={"type": "array"})
    assert (outcome.status, outcome.output) == ("done", [])


def test_off_lets_everything_pass_but_nothing() -> None:
    """An echo and an invented place are kept, a summary alone is not."""
    assert work(ECHO, evidence="off")[0].status == "done"
    outcome, _, record = work(answer(sources=["made_up.md:7"]), evidence="off")
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2", "made_up.md:7"), 95)
    assert [event for event in record if event.kind == "warning"] == []
    assert kind(work(SUMMARY_ALONE, SUMMARY_ALONE, evidence="off")[0]) == "criterion_not_met"


# -- places in files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["notes.md:2", "notes.md:2-3", "`notes.md#L2`", "./notes.md, line 2"])
def test_a_line_of_a_file_that_was_read_is_kept(notes: Path, source: str) -> None:
    """In one spelling, with the confidence the worker states."""
    outcome, _, record = work(READ, answer(sources=[source]), material=notes)
    assert outcome.claims[0].sources == ("t2", "notes.md:2-3" if "-" in source else "notes.md:2")
    assert (outcome.confidence, outcome.claims[0].confidence, outcome.evidence) == (95, 95, None)
    assert [event for event in record if event.kind == "warning"] == []


@pytest.mark.parametrize(
    "tool", [call("search_files", query="Bergen"), call("search_documents", query="hall Bergen"), READ]
)
def test_what_a_search_showed_was_read(notes: Path, tool: Reply) -> None:
    """Every tool that shows lines of a file counts; a line beyond its end is not there."""
    assert work(tool, answer(sources=["notes.md:3"]), material=notes)[0].confidence == 95
    unsaid = [{"statement": "Qqq.", "sources": ["notes.md:4"]}]
    assert work(tool, answer(claims=unsaid), material=notes)[0].confidence == 50


@pytest.mark.parametrize(
    "source", ["invented.md:12", "docs/notes.txt:1", "notes.md:0", "file:line", "url or file:line"]
)
def test_an_invented_place_was_kept_as_a_source(notes: Path, source: str) -> None:
    """It is removed with a warning, and the confidence is at most 50."""
    said = answer(claims=[{"statement": "Qqq.", "confidence": 90, "sources": [source]}])
    outcome, calls, record = work(READ, said, material=notes)
    assert (outcome.status, len(calls)) == ("done", 2)
    assert (outcome.claims[0].sources, outcome.claims[0].confidence, outcome.confidence) == (("t2",), 50, 50)
    assert outcome.evidence is not None
    assert outcome.evidence.removed == 1
    [warning] = [event for event in record if event.kind == "warning"]
    assert (warning.task, source in warning.data["message"]) == ("t2", True)


def test_a_file_that_was_only_listed_was_a_source(notes: Path) -> None:
    """A list shows names and no lines; without any call nothing was read at all."""
    said = answer(sources=["notes.md:2"])
    assert work(call("list_files"), said, material=notes)[0].claims[0].sources == ("t2",)
    assert work(said, material=notes)[0].confidence == 50


def test_a_call_that_failed_showed_nothing(notes: Path) -> None:
    """Though it opened the file, no line of it may be named."""
    said = answer(sources=["notes.md:2"])
    assert work(call("read_file", path="notes.md", start_line=99), said, material=notes)[0].confidence == 50


def test_the_line_is_found_from_the_words(notes: Path) -> None:
    """Of a file that was read: where no line, or one that it has not, is named."""
    for source in ("notes.md", "notes.md:99"):
        outcome, _, _ = work(READ, answer(sources=[source]), material=notes)
        assert outcome.claims[0].sources == ("t2", "notes.md:2")
        assert outcome.confidence == 95


def test_a_finding_at_an_invented_place_kept_it(notes: Path) -> None:
    """Its path and line are held to the same as a source; other findings are left alone."""
    findings = [
        {"message": "Qqq.", "path": "gone.py", "line": 5, "confidence": 90},
        {"message": "Xxx.", "path": "notes.md", "line": 77, "confidence": 90},
        {"message": "The hall is small.", "path": "notes.md", "line": 2, "end_line": 9, "confidence": 90},
    ]
    outcome, _, _ = work(READ, answer(findings=findings), material=notes)
    told = [(each.path, each.line, each.end_line, each.confidence) for each in outcome.findings]
    assert told == [(None, None, None, 50), ("notes.md", None, None, 50), ("notes.md", 2, 3, 90)]
    assert outcome.confidence == 50


def test_what_an_input_carried_may_be_named() -> None:
    """Its places, up to the last line it names, and its addresses as it knew them; no others."""
    claims = [
        Claim(statement="s", sources=("notes.md:2-3", "https://a.example/x")),
        Claim(statement="u", sources=("https://b.example (unconfirmed)",)),
    ]
    given = done("t1", "ben", summary="s", output="o", claims=claims)
    sources = ["notes.md:3", "https://a.example/x/", "https://b.example"]
    outcome, _, _ = work(answer(sources=sources), inputs=(given,), tools=())
    kept = ("t2", "notes.md:3", "https://a.example/x/", "https://b.example (unconfirmed)")
    assert (outcome.claims[0].sources, outcome.confidence) == (kept, 95)
    outcome, _, _ = work(answer(sources=["notes.md:4", "https://c.example"]), inputs=(given,), tools=())
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2",), 50)


def test_code_in_the_context_of_a_reader_is_given() -> None:
    """As a review gives it: numbered lines under the name of their file. It is not own knowledge."""
    task = {"context": {"code": {"src/app.py": "...\n40: def f():\n41:     pass\n..."}}}
    found = [{"message": "Bad.", "path": "src/app.py", "line": 41, "confidence": 90}]
    outcome, _, _ = work(answer(findings=found), task=task, tools=())
    assert (outcome.findings[0].line, outcome.findings[0].confidence, outcome.confidence) == (41, 90, 95)
    found[0]["line"] = 42
    outcome, _, _ = work(answer(findings=found), task=task, tools=())
    assert (outcome.findings[0].line, outcome.findings[0].confidence) == (None, 50)


# -- addresses and tasks -----------------------------------------------------------------------------------------------


def test_an_address_comes_from_a_tool_or_is_removed() -> None:
    """Where there are tools, one that none of them returned is invented."""
    outcome, _, _ = work(call("find_page"), answer(sources=["https://halls.example/bergen"]))
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2", "https://halls.example/bergen"), 95)
    outcome, _, _ = work(call("find_page"), answer(sources=["https://halls.example/oslo"]))
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2",), 50)


def test_a_forged_task_id_was_kept_as_a_source() -> None:
    """Of ids only those it depends on are its sources; they and its own are written by code."""
    given = done("t1", "ben", summary="s", output="o")
    outcome, _, _ = work(answer(sources=["task t1", "t2", "[T1]"]), inputs=(given,))
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2", "t1"), 95)
    for forged in ("t3", "t9", "hall", "t1, t3"):
        outcome, _, record = work(answer(sources=[forged]), inputs=(given,))
        assert outcome.confidence == 50
        assert not {"t3", "t9", "hall"} & set(outcome.claims[0].sources)
        assert [event for event in record if event.kind == "warning"]


def test_words_that_cannot_be_looked_up_are_left_alone(notes: Path) -> None:
    """Neither a place nor an address nor a task: nobody can tell."""
    sources = ["the annual report", "John 3:16", "Wikipedia"]
    outcome, _, _ = work(READ, answer(sources=sources), material=notes)
    assert (outcome.claims[0].sources, outcome.confidence) == (("t2", *sources), 95)


# -- own knowledge -----------------------------------------------------------------------------------------------------


def test_without_material_and_tools_confidence_was_believed() -> None:
    """Addresses are kept and marked, nothing is above 70, and statements are counted."""
    outcome, calls, record = work(answer(sources=["https://x.example/a"]), tools=())
    assert len(calls) == 1
    assert outcome.claims[0].sources == ("t2", "https://x.example/a (unconfirmed)")
    assert (outcome.claims[0].confidence, outcome.confidence) == (70, 70)
    assert outcome.evidence is not None
    assert (outcome.evidence.removed, outcome.evidence.own_knowledge) == (0, 1)
    assert [event for event in record if event.kind == "warning"] == []
    assert work(answer(sources=["made.md:3"]), tools=())[0].confidence == 50


def test_unknown_confidence_stays_unknown() -> None:
    """A limit is no statement."""
    assert work(answer(confidence=None), tools=())[0].confidence is None


def test_strict_fails_what_nothing_confirms(notes: Path) -> None:
    """Fed back in the one re-ask; a confirmed place is enough."""
    outcome, calls, _ = work(answer(sources=["https://x.example"]), answer(), tools=(), evidence="strict")
    assert (kind(outcome), len(calls)) == ("criterion_not_met", 2)
    bad, good = answer(sources=["gone.md:1"]), answer(sources=["notes.md:2"])
    outcome, calls, _ = work(READ, bad, good, material=notes, evidence="strict")
    assert (outcome.status, outcome.confidence) == ("done", 95)
    assert "gone.md:1" in calls[2].messages[-1].text


# -- the record, and size ----------------------------------------------------------------------------------------------


def test_a_resumed_attempt_judges_by_the_record(notes: Path) -> None:
    """What was read is what the record says, however the file is now; nothing is asked again."""
    store = MemoryStore()
    before, _, record = work(READ, answer(sources=["notes.md:3"]), material=notes, store=store)
    notes.write_text("Gone.\n")
    after, calls, _ = work(material=notes, store=store, replay=replay(record))
    assert calls == []
    assert (after.claims, after.confidence) == (before.claims, before.confidence) == (before.claims, 95)


def test_five_thousand_findings_are_checked_in_linear_time() -> None:
    """Whether their places hold or not; in an attempt, beside the loop."""
    lines = {f"src/m{number}.py": 400 for number in range(500)}
    text = "\n".join(f"src/m0.py:{number}: value {number} of the table" for number in range(1, 400))
    results: list[tuple[dict[str, Any], ToolResult]] = [({}, ToolResult(text=text, lines=lines))]
    findings = tuple(
        Finding(
            path=f"src/m{number % 600}.py",
            line=number % 500 + 1,
            message=f"The value {number} of the table is wrong.",
            confidence=90,
            sources=(f"src/m{number % 600}.py:{number % 450}", f"https://a.example/{number}", "t9"),
        )
        for number in range(5000)
    )

    def seconds(count: int) -> float:
        began = time.thread_time()
        held = Grounds(TASK, {}, results, has_means=True).hold(Answer("s", "o", findings=findings[:count]))
        assert len(held.answer.findings) == count
        assert held.false
        return time.thread_time() - began

    few, many = min(seconds(1000) for _ in range(3)), min(seconds(5000) for _ in range(3))
    assert many < 15 * few


def test_a_result_of_thousands_of_findings_is_done(notes: Path) -> None:
    """Its sources are checked beside the loop."""
    findings = [{"message": f"Line {number}.", "path": "notes.md", "line": number} for number in range(1, 2001)]
    outcome, _, _ = work(READ, answer(findings=findings), material=notes)
    assert [finding.line for finding in outcome.findings].count(None) == 1997
    assert outcome.evidence is not None
    assert outcome.evidence.removed == 1997
