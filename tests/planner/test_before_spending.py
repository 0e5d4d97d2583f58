"""Remarks before anything is spent: material that is missing, and when one plain call would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.planner.before_spending import material_warnings, plain_call_hint
from chargehand.values.plan import Plan, Task
from chargehand.values.request import Material, Request
from tests.cli.terminal import Shell, planned, task


def plan(*edges: tuple[str, ...]) -> Plan:
    tasks = [
        Task(id=f"t{n}", worker="w", instruction="Do it.", success_criterion="Done.", depends_on=depends_on)
        for n, depends_on in enumerate(edges, 1)
    ]
    return Plan(goal="g", tasks=tuple(tasks))


@pytest.mark.parametrize(
    "text",
    [
        "Summarise the attached contract.",
        "Attached is a report: shorten it.",
        "What do the figures in the attachment mean?",
        "See enclosed. Answer it.",
        "Fasse den Vertrag im Anhang zusammen.",
    ],
)
def test_a_request_that_speaks_of_something_attached_warns_without_material(text: str) -> None:
    """With the remedy; with material there is nothing to say."""
    [warning] = material_warnings(Request(text=text))
    assert "--with PATH" in warning
    assert material_warnings(Request(text=text, material=(Material(name="a", path="/a"),))) == ()


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("contract.pdf", b"%PDF-1.7 ...", "is a PDF"),
        ("photo.jpg", b"\xff\xd8\0\0", "is not text"),
        ("notes.txt", b"Words.", None),
        ("umlauts.txt", "Bücher".encode("utf-16"), None),
        ("empty.txt", b"", None),
        ("rows.parquet", b"PAR1\0", None),
        ("shop.db", b"SQLite format 3\0", None),
    ],
)
def test_a_file_that_no_tool_can_read_is_named_before_anything_is_spent(
    name: str, data: bytes, said: str | None, tmp_path: Path
) -> None:
    """Text in any encoding, and the data files that query_data reads, are nothing to warn of."""
    (tmp_path / name).write_bytes(data)
    request = Request(text="Sum it up.", material=(Material(name=name, path=str(tmp_path / name)),))
    warnings = material_warnings(request)
    assert [said in warning and name in warning for warning in warnings if said] == [True] * bool(said)
    assert len(warnings) == bool(said)


@pytest.mark.parametrize(
    "text",
    [
        "Explain how muscles are attached to bones.",
        "Plan a house with an attached garage.",
        "Explain attachment theory.",
        "Shorten the attached text: " + "it was a day at sea. " * 200,
    ],
)
def test_other_uses_of_the_words_do_not_warn(text: str) -> None:
    """Nor does a request that has the text in it."""
    assert material_warnings(Request(text=text)) == ()


def test_the_hint_names_what_speaks_for_one_plain_call(tmp_path: Path) -> None:
    """One task, a pure chain, and material that fits into one prompt."""
    one, chain, wide = plan(()), plan((), ("t1",)), plan((), ())
    request = Request(text="r")
    assert "one task" in (plain_call_hint(one, request) or "")
    assert "a chain of 2 tasks" in (plain_call_hint(chain, request) or "")
    assert plain_call_hint(wide, request) is None
    (tmp_path / "a.md").write_text("x" * 900)
    given = request.model_copy(update={"material": (Material(name="m", path=str(tmp_path)),)})
    assert "900 characters" in (plain_call_hint(wide, given) or "")
    (tmp_path / "b.md").write_text("x" * 90_000)
    assert plain_call_hint(wide, given) is None


def test_both_remarks_reach_the_terminal(shell: Shell) -> None:
    """`plan` says both; `run` warns before its first call."""
    script = shell.script(planned(task("t1")), {"when": {"role": "worker"}, "reply": {"text": "It is short."}})
    made = shell("plan", "say what the attached contract is about", "--model", script)
    assert made.err.index("--with PATH") < made.err.index("run --single")
    done = shell("run", "say what the attached contract is about", "--model", script)
    assert "--with PATH" in done.err


def test_standard_input_is_material_but_does_not_hide_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Nothing is missing, and what is not text is still named."""
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\0\0")
    assert material_warnings(Request(text="Summarise the attached contract."), and_stdin=True) == ()
    photo = Material(name="photo.jpg", path=str(tmp_path / "photo.jpg"))
    [warning] = material_warnings(Request(text="Sum it up.", material=(photo,)), and_stdin=True)
    assert "photo.jpg is not text" in warning
