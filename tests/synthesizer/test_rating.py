"""Findings rated on their own by a scorer; the doubtful critical ones once more by a larger model."""

from __future__ import annotations

import json
from typing import Any

from chargehand.errors import ModelError
from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer.code_excerpts import Exhibits
from chargehand.synthesizer.rate_findings import MOST_RATED
from chargehand.values.budget import Budget
from chargehand.values.effect import ModelCall
from chargehand.values.outcome import Finding
from chargehand.values.plan import Plan, Task
from tests.kernel import MODEL
from tests.synthesizer.syntheses import BRAIN, Made, finding, make, result, text_of

LARGE = SupervisorModel(model=MODEL, options={"temperature": 0.1})
GRAVE = finding("A user's input reaches the shell.", severity="critical", path="a.py", line=1)
SMALL = finding("A name is misspelt.", severity="info", path="b.py", line=2)


def rated(*findings: Finding, scores: dict[str, Any], **fields: Any) -> Made:
    """Each finding is rated by a word of it; with the temperature of the larger model, by the word and a star."""

    def talk(call: ModelCall) -> Any:
        if call.role != "scorer":
            return {"answer": "There are findings [t1]."}
        star = "*" if call.options else ""
        said = next(
            scores[word] for word in scores if word.endswith("*") == bool(star) and word.strip("*") in text_of(call)
        )
        return {"score": said, "met": True, "reason": "r"} if isinstance(said, int) else said

    return make([result("t1", output="x", findings=findings)], talk, rater=BRAIN, **fields)


def test_each_finding_gets_the_scorers_confidence() -> None:
    """Rated at the same time, each in a call of its own."""
    made = rated(GRAVE, SMALL, scores={"shell": 90, "misspelt": 30})
    assert [f.confidence for f in made.synthesis.findings] == [90, 30]
    assert sorted(made.keys) == ["@rate/1/1", "@rate/2/1"]
    assert made.seconds == 1.0
    assert not any("misspelt" in text_of(call) and "shell" in text_of(call) for call in made.calls)
    assert made.synthesis.notes == ()


def test_a_doubtful_critical_finding_is_examined_again() -> None:
    """Between 50 and 79 the larger model's word counts; otherwise it is not asked."""
    made = rated(GRAVE, SMALL, scores={"shell": 60, "misspelt": 60, "shell*": 85}, examiner=LARGE)
    assert [f.confidence for f in made.synthesis.findings] == [85, 60]
    assert "@rate/1/again/1" in made.keys
    for score in (49, 80):
        made = rated(GRAVE, scores={"shell": score}, examiner=LARGE)
        assert ([f.confidence for f in made.synthesis.findings], len(made.keys)) == ([score], 1)


def test_what_cannot_be_rated_keeps_its_workers_word_and_is_named() -> None:
    """Never taken for rated."""
    made = rated(GRAVE, SMALL, scores={"shell": ModelError("bad_request", "no"), "misspelt": 30})
    assert [f.confidence for f in made.synthesis.findings] == [80, 30]
    [note] = made.synthesis.notes
    assert "a.py:1" in note
    assert "b.py" not in note
    made = rated(GRAVE, scores={"shell": 60, "shell*": "?"}, examiner=LARGE)
    assert [f.confidence for f in made.synthesis.findings] == [60]


def test_a_budget_that_is_used_up_leaves_them_unscored() -> None:
    """The answer is given all the same."""
    made = rated(GRAVE, scores={}, options={"budget": Budget(tokens=300)})
    assert made.calls == []
    assert "a.py:1" in made.synthesis.notes[0]
    assert made.synthesis.answer == "x"


def test_the_gravest_are_rated_when_there_are_too_many() -> None:
    """How many are not is said."""
    many = [
        finding(f"Style of the function {chr(97 + n % 26) * (n // 26 + 3)}.", severity="info", path=f"f{n}.py")
        for n in range(MOST_RATED)
    ]
    made = rated(*many, GRAVE, scores={"": 10}, options={"max_concurrent": 300})
    assert len(made.keys) == MOST_RATED
    assert any("shell" in text_of(call) for call in made.calls)
    assert made.synthesis.notes[0].startswith("1 ")


def test_duplicates_are_rated_once() -> None:
    """After merging, so that the cost is that of the findings a reader sees."""

    def talk(call: ModelCall) -> Any:
        return {"score": 70, "met": True, "reason": "r"} if call.role == "scorer" else {"answer": "So [t1, t2]."}

    made = make([result("t1", findings=[GRAVE]), result("t2", findings=[GRAVE])], talk, rater=BRAIN)
    assert [key for key in made.keys if key.startswith("@rate")] == ["@rate/1/1"]
    [found] = made.synthesis.findings
    assert (found.confidence, found.sources) == (70, ("t1", "t2"))
    assert json.loads(text_of(made.of("scorer")[0]).split("<data>\n")[1].split("\n</data>")[0])["line"] == 1


CODE = {"code": {"app.py": "3: first()\n4: run(cmd, shell=True)\n5: last()"}, "changed": {"app.py": [[4, 4]]}}


def placed(**fields: Any) -> Finding:
    given = {"severity": "critical", "category": "x", "path": "app.py", "line": 4, "message": "A shell.", **fields}
    return Finding.model_validate(given)


def test_the_scorer_sees_the_lines_a_finding_is_about() -> None:
    """As the plan's tasks show them; a finding off the changed lines, or in a file nobody was shown, is not rated."""
    plan = Plan(tasks=(Task(id="t1", worker="w", instruction="Look.", context=CODE),))
    seen = Exhibits.of(plan)
    assert seen.lines_around(placed()) == "3: first()\n4: run(cmd, shell=True)\n5: last()"
    assert seen.rates(placed())
    assert seen.rates(placed(line=3, end_line=5))
    assert not seen.rates(placed(line=5))
    assert not seen.rates(placed(path="other.py"))
    assert seen.rates(placed(path=None, line=None))


def test_one_unsure_rating_does_not_kill_what_an_analyzer_is_sure_of() -> None:
    """Its confidence is measured: it loses 10 to doubt and 25 to denial; a model's finding has its rating."""
    sure = placed(confidence=95, sources=("bandit:B602",))
    for score, known in ((30, 85), (10, 70), (98, 98)):
        assert rated(sure, scores={"shell": score}).synthesis.findings[0].confidence == known
    told = placed(confidence=95, sources=("reader-1",))
    assert rated(told, scores={"shell": 30}).synthesis.findings[0].confidence == 30
