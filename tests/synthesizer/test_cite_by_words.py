"""Citations that code adds to an answer without any, and answers that rest on nothing code can find."""

from __future__ import annotations

from chargehand.models.supervisor_models import SupervisorModel
from chargehand.synthesizer.cite_by_words import cite_by_words
from chargehand.synthesizer.prompt import SMALL_RULES
from chargehand.values.outcome import Outcome
from tests.kernel import SMALL_MODEL
from tests.synthesizer.syntheses import make, result

OUTCOMES: dict[str, Outcome] = {
    "t1": result("t1", output="The sourdough rests for 16 hours at 12 degrees."),
    "t2": result("t2", output="A loaf of rye bread costs 52 kronor."),
}


def test_a_paragraph_cites_the_result_that_has_its_words_and_figures() -> None:
    """Each paragraph for itself; headings, and what no result has, stay as they are."""
    answer = "## Rest\n\nThe sourdough rests for 16 hours.\n\nA loaf costs 52 kronor.\n\nIt tastes good."
    cited = "## Rest\n\nThe sourdough rests for 16 hours. [t1]\n\nA loaf costs 52 kronor. [t2]\n\nIt tastes good."
    assert cite_by_words(answer, OUTCOMES) == cited


def test_a_figure_that_a_result_does_not_have_is_not_cited_from_it() -> None:
    """The words alone are not enough."""
    answer = "The sourdough rests for 18 hours at 12 degrees."
    assert cite_by_words(answer, OUTCOMES) == answer


def test_an_answer_that_cites_is_left_as_it_is() -> None:
    """Where it cites, the model has chosen what each paragraph rests on."""
    answer = "The sourdough rests for 16 hours [t1].\n\nA loaf costs 52 kronor."
    assert cite_by_words(answer, OUTCOMES) == answer


def test_an_answer_without_citations_in_the_words_of_results_was_rejected() -> None:
    """A small model is asked once, by its short rules, and its answer counts."""
    talk = lambda _: "The sourdough rests for 16 hours.\n\nA loaf of rye bread costs 52 kronor."  # noqa: E731
    made = make(list(OUTCOMES.values()), talk, brain=SupervisorModel(model=SMALL_MODEL))
    assert [call.messages[0].text for call in made.of("synthesizer")] == [SMALL_RULES]
    assert made.synthesis.provenance.cited == {"t1", "t2"}
    assert made.synthesis.answer.endswith("52 kronor. [t2]")
