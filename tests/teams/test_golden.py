"""What each shipped team must not miss in its sample material, and where its figures come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from chargehand import Supervisor
from chargehand.synthesizer.figures import figures
from chargehand.synthesizer.result_index import readings, values_in
from chargehand.team import load
from chargehand.testing import ScriptedModel
from tests.teams.plays import Played, material, script

Run = Callable[[str], Played]
ADVICE = {"patient": "Not medical advice", "portfolio": "Not financial advice", "contract": "Not legal advice"}


# --- figures ----------------------------------------------------------------------------------------------------------


def test_every_figure_of_the_portfolio_report_was_computed_by_query_data_or_read_in_the_policy(played: Run) -> None:
    """None is a model's: what is not a result of a query is a figure of the rules, as the file has it."""
    run = played("portfolio")
    computed, rules = values_in(run.texts("query_data")), values_in(run.texts("read_file") + run.texts("read_material"))
    stated = figures(_without_labels(run.report.answer))
    by_query = [figure for figure in stated if not computed.isdisjoint(readings(figure))]
    assert [figure.text for figure in stated if figure not in by_query and rules.isdisjoint(readings(figure))] == []
    from_rules = {figure.text for figure in stated if figure not in by_query}
    assert from_rules <= {"5,000", "5,200"}
    assert {"283,679.15", "18,488.00", "21,705.07"} <= {figure.text for figure in by_query}
    assert run.report.provenance.problems == ()


def test_the_proposed_trades_keep_the_policy_by_their_own_figures(played: Run) -> None:
    """Shares add up to the whole, the money that is spent is there, and every class ends inside its band."""
    outputs: dict[str, Any] = {outcome.task: outcome.output for outcome in played("portfolio").report.outcomes}
    drift, trades = outputs["drift"]["tables"], outputs["trades"]["tables"]
    rows = {row["asset_class"]: row for row in drift["drift"]}
    assert sum(row["value_eur"] for row in rows.values()) == pytest.approx(drift["total_eur"])
    assert {name for name, row in rows.items() if row["outside"]} == set(trades["to_target"]) - {
        "total_with_new_money_eur"
    }
    totals = trades["totals"]
    assert sum(sale["proceeds_eur"] for sale in trades["sales"]) == pytest.approx(totals["proceeds_eur"])
    assert sum(trades["purchases"].values()) == pytest.approx(totals["for_purchases_eur"])
    assert totals["for_purchases_eur"] + totals["kept_as_cash_eur"] == pytest.approx(totals["proceeds_eur"] + 6000)
    for name, share in trades["afterwards_pct"].items():
        assert abs(share - rows[name]["target_pct"]) <= rows[name]["band_pct"]


@pytest.mark.parametrize("name", ["competitive", "patient", "curriculum", "launch"])
def test_rows_that_workers_report_stand_in_what_query_data_returned(name: str, played: Run) -> None:
    """Every number of a result in tables was computed by the tool, dates and names aside."""
    run = played(name)
    asked = {each.task for each in run.returned if each.tool == "query_data"}
    computed = values_in(run.texts("query_data"))
    for outcome in run.report.outcomes:
        if outcome.task in asked:
            numbers = list(_numbers(outcome.output["tables"]))
            assert len(numbers) > 10
            missing = [n for n in numbers if any(computed.isdisjoint(readings(f)) for f in figures(f"= {abs(n)}"))]
            assert missing == [], outcome.task


# --- not advice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ADVICE)
def test_a_report_ends_with_the_line_that_it_is_not_advice(name: str, played: Run) -> None:
    """It is the team's, not the model's: no scripted reply has it."""
    report = played(name).report
    assert ADVICE[name] in report.answer.rstrip().splitlines()[-1]
    assert report.answer.rstrip().rstrip("*").endswith(load(name).disclaimer)
    assert ADVICE[name] not in script(name)


@pytest.mark.parametrize("name", ADVICE)
@pytest.mark.parametrize("tasks", [1, 2])
def test_the_line_stands_also_where_no_model_writes_the_answer(name: str, tasks: int, tmp_path: Path) -> None:
    """One task, whose result is the answer, or a synthesizer that fails."""
    done: dict[str, Any] = {
        "summary": "Done.",
        "output": {"tables": {}},
        "claims": [],
        "findings": [],
        "confidence": 90,
    }
    model = ScriptedModel(
        [
            {"when": {"role": "worker"}, "reply": {"json": done}},
            {"when": {"role": "synthesizer"}, "reply": {"error": {"status": 400, "message": "no"}}},
        ]
    )
    worker = load(name).workers[0].name
    plan = {"goal": "g", "tasks": [_task(f"t{n}", worker) for n in range(tasks)]}
    report = Supervisor(name, model=model, home=tmp_path).run_sync(plan=plan)
    assert ADVICE[name] in report.answer.rstrip().splitlines()[-1]


# --- what must not be missed ------------------------------------------------------------------------------------------


def test_the_contract_team_finds_every_planted_clause(played: Run) -> None:
    """By line, each as grave as the playbook makes it."""
    text = (material("contract") / "agreement.md").read_text(encoding="utf-8").splitlines()
    found = {text[(finding.line or 1) - 1].split()[0]: finding for finding in played("contract").report.findings}
    beyond = {"3.2", "4.2", "4.3", "5.2", "5.3", "10.1", "10.3", "11.2", "12.3", "12.5"}
    assert {clause for clause, finding in found.items() if finding.severity == "critical"} >= beyond
    assert {"2.1", "2.3", "3.1", "11.3"} <= found.keys()
    answer = played("contract").report.answer
    for word in ("12.7", "Affiliates", "24 months", "99.9 %", "EUR 7,000"):
        assert word in answer


def test_the_patient_team_leaves_the_allergy_open_and_reports_what_only_the_nurse_wrote(played: Run) -> None:
    """A contradiction that nobody can resolve is told as one."""
    report = played("patient").report
    assert [(each.subject, each.resolved) for each in report.contradictions] == [("allergies", False)]
    assert "penicillin" in report.answer
    critical = [finding.message for finding in report.findings if finding.severity == "critical"]
    for medicine in ("Ibuprofen", "Spironolactone", "Metformin"):
        assert any(message.startswith(medicine) for message in critical), medicine


def test_the_competitive_team_gives_both_prices_and_judges_by_date(played: Run) -> None:
    """The page is older than the clipping; a rumour stays one."""
    report = played("competitive").report
    (price,) = report.contradictions
    assert price.resolved
    assert "later" in (price.reason or "")
    assert "4.90 EUR" in report.answer
    assert "3.90 EUR" in report.answer
    assert "a rumour" in report.answer


@pytest.mark.parametrize(("name", "document"), [("curriculum", "syllabus.md"), ("launch", "dealer-letter.md")])
def test_documents_are_written_into_the_folder_of_the_run(name: str, document: str, played: Run) -> None:
    """Where the answer says, and nowhere else."""
    run = played(name)
    assert f"documents/{document}" in run.report.answer
    assert [path.name for path in (run.folder / "documents").iterdir()] == [document]
    assert len((run.folder / "documents" / document).read_text(encoding="utf-8")) > 400


def test_the_syllabus_has_a_section_for_each_session_that_takes_place(played: Run) -> None:
    """Nine of ten; no section for the cancelled one."""
    text = (played("curriculum").folder / "documents/syllabus.md").read_text(encoding="utf-8")
    assert re.findall(r"^## Session (\d+)", text, re.MULTILINE) == ["1", "2", "4", "5", "6", "7", "8", "9", "10"]


def _task(id: str, worker: str) -> dict[str, Any]:
    return {"id": id, "worker": worker, "instruction": "Read what there is.", "success_criterion": "It is read."}


def _numbers(data: Any) -> Iterator[float]:
    if isinstance(data, dict | list):
        inner = cast("dict[str, Any] | list[Any]", data)
        for value in inner.values() if isinstance(inner, dict) else inner:
            yield from _numbers(value)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield data


def _without_labels(answer: str) -> str:
    """The answer without numbers of sections, which name a rule."""
    return re.sub(r"\bsections? [\d.]*\d", "section", answer)
