"""What is said twice is said once, with all sources and the confidence of agreement; what differs stays apart."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargehand.synthesizer.figures import figures
from chargehand.synthesizer.merge_duplicates import join_findings, merge_claims, merge_findings, near_findings
from chargehand.values.outcome import Claim, Finding
from tests.pace import Timed

LABELLED = Path(__file__).parent / "labelled" / "duplicates.jsonl"
# Measured: precision 1.00 and recall 0.35 and 0.40. Most of the labelled groups are paraphrases, which stay apart.
LEAST_PRECISION = 0.98
LEAST_RECALL = {"dev": 0.34, "held out": 0.38}


def claim(statement: str, *sources: str, confidence: int | None = None) -> Claim:
    return Claim(statement=statement, confidence=confidence, sources=sources or ("t1",))


def finding(
    message: str, *sources: str, line: int | None = 3, end_line: int | None = None, **fields: object
) -> Finding:
    data = {"severity": "warning", "category": "bug", "path": "a.py", **fields}
    return Finding.model_validate(
        {"message": message, "line": line, "end_line": end_line, "sources": sources or ("t1",), **data}
    )


def grouped(merged: Sequence[Claim | Finding]) -> list[list[str]]:
    return [list(item.sources) for item in merged]


def labelled(half: str) -> tuple[dict[str, tuple[int, int]], dict[str, int]]:
    """The group each item belongs to, and the one it got, when all of a half are merged together."""
    wanted: dict[str, tuple[int, int]] = {}
    got: dict[str, int] = {}
    claims: list[Claim] = []
    findings: list[Finding] = []
    for number, line in enumerate(LABELLED.read_text(encoding="utf-8").splitlines()):
        entry = json.loads(line)
        if entry["half"] != half:
            continue
        for group, items in enumerate(entry["groups"]):
            for item in items:
                source = f"s{len(wanted)}"
                wanted[source] = number, group
                if entry["kind"] == "claim":
                    claims.append(Claim.model_validate({**item, "sources": [source]}))
                else:
                    findings.append(Finding.model_validate({**item, "sources": [source]}))
    for place, merged in enumerate([*merge_claims(claims), *merge_findings(findings)]):
        got.update(dict.fromkeys(merged.sources, place))
    return wanted, got


@pytest.mark.parametrize("half", ["dev", "held out"])
def test_labelled_groups_are_found(half: str) -> None:
    """Of all pairs of items: which are merged and should be, and the other way round."""
    wanted, got = labelled(half)
    assert wanted.keys() == got.keys()
    right = wrong = missed = 0
    for one, other in combinations(wanted, 2):
        same, merged = wanted[one] == wanted[other], got[one] == got[other]
        right += same and merged
        wrong += merged and not same
        missed += same and not merged
    assert right / (right + wrong) >= LEAST_PRECISION
    assert right / (right + missed) >= LEAST_RECALL[half]


CLAIM_LINES = [
    [[item["statement"] for item in group] for group in entry["groups"]]
    for entry in map(json.loads, LABELLED.read_text(encoding="utf-8").splitlines())
    if entry["kind"] == "claim"
]


def test_labelled_claims_that_a_judge_names_are_merged() -> None:
    """All but one of the groups: code does not know that 14:30 is 2:30 pm. Nothing else is merged."""
    named = [group for groups in CLAIM_LINES for group in groups]
    wanted = {text: place for place, group in enumerate(named) for text in group}
    merged = merge_claims([claim(text, text) for text in wanted], same=named)
    assert all(len({wanted[source] for source in each.sources}) == 1 for each in merged)
    assert len(merged) == len(set(wanted.values())) + 1


def test_a_judge_that_names_all_claims_merges_no_two_figures() -> None:
    """Each line of the labelled set as one: what differs in a number, date or sign stays apart."""
    for groups in CLAIM_LINES:
        texts = [text for group in groups for text in group]
        for each in merge_claims([claim(text, text) for text in texts], same=[texts]):
            stated = {frozenset(figure.value for figure in figures(source)) for source in each.sources}
            assert len(stated - {frozenset()}) <= 1, each


def test_a_claim_without_a_figure_does_not_join_two_with_different_ones() -> None:
    """In whatever order they are named; the statement that is kept is one that has a figure."""
    none, five, seven = claim("Many work there.", "t1"), claim("It employs 500.", "t2"), claim("It employs 700.", "t3")
    named = [{none.statement, seven.statement}, {none.statement, five.statement}]
    for same in (named, named[::-1]):
        merged = merge_claims([none, five, seven], same=same)
        assert [(each.statement, each.sources) for each in merged] == [
            (five.statement, ("t1", "t2")), (seven.statement, ("t3",))
        ]  # fmt: skip


def test_the_labelled_set_is_large_enough() -> None:
    """A hundred groups and more, each with a near miss."""
    lines = LABELLED.read_text(encoding="utf-8").splitlines()
    assert len(lines) >= 100
    assert all(len(json.loads(line)["groups"]) >= 2 for line in lines)


def test_the_same_place_and_category_is_the_same_finding() -> None:
    """Whatever the words, if lines overlap and nothing of note differs."""
    merged = merge_findings(
        [
            finding("Query built from request data.", "t1", line=10, category="sql-injection"),
            finding(
                "Attackers reach the database.", "t2", line=9, end_line=12, category="SQL Injection", path="./a.py"
            ),
            finding("Query built from request data.", "t3", line=30, category="sql-injection"),
        ]
    )
    assert grouped(merged) == [["t1", "t2"], ["t3"]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The limit is 30 requests.", "The limit is 40 requests."),
        ("The limit is 30 ms.", "The limit is 30 s."),
        ("It ends on 3 May 2024.", "It ends on 4 May 2024."),
        ("The input is checked.", "The input is not checked."),
        ("The input is checked.", "The input is unchecked."),
        ("Call `load` is slow.", "Call `save` is slow."),
        ("The office in Oslo is closed.", "The office in Bergen is closed."),
        ("Oslo is closed today.", "Bergen is closed today."),
        ("The build passes.", "The build fails."),
        ("Net margin is thin.", "Gross margin is thin."),
        ("Wind is cheaper than coal.", "Coal is cheaper than wind."),
        ("The fee is 5 EUR.", "The fee is 5 EUR a month."),
        ("3 of 5 tests ran.", "5 of 3 tests ran."),
        ("The pump is on.", "The pump is off."),
        ("The operator turned on the pump.", "The operator turned off the pump."),
        ("The server is up.", "The server is down."),
        ("All tests pass.", "Some tests pass."),
        ("All tests pass.", "Most tests pass."),
        ("Tests pass.", "Some tests pass."),
        ("The tenant may terminate the lease.", "The tenant must terminate the lease."),
        ("Passwords must be hashed.", "Passwords should be hashed."),
        ("Only admins can log in.", "Admins can log in."),
        ("Admins can log in.", "Admins exclusively can log in."),
        ("Alice pays Bob.", "Bob pays Alice."),
        ("Alice pays Bob.", "Alice is paid by Bob."),
        ("The old dog bites the tall man.", "The tall man bites the old dog."),
        ("Le contrat est valable.", "Le contrat n'est pas valable."),
        ("Der Vertrag ist wirksam.", "Der Vertrag ist nicht wirksam."),
        ("Es gibt Mängel.", "Es gibt keine Mängel."),
        ("El contrato es válido.", "El contrato no es válido."),
        ("Il contratto è valido.", "Il contratto non è valido."),
        ("Kontrakten er gyldig.", "Kontrakten er ikke gyldig."),
        ("Het contract is geldig.", "Het contract is niet geldig."),
    ],
)
def test_what_differs_is_never_merged(one: str, other: str) -> None:
    """A number, unit, date, negation, name, verdict, degree or direction; as claims, and as findings of no place."""
    assert len(merge_claims([claim(one, "t1"), claim(other, "t2")])) == 2
    assert len(merge_findings([finding(one, "t1", path=None), finding(other, "t2", path=None)])) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("On Mondays the museum is closed.", "The museum is closed on Mondays."),
        ("The main risk for Nordwind is customer churn.", "Customer churn is the main risk for Nordwind."),
        ("The rates were raised by 2,000 EUR.", "The rate was raised by 2000 EUR"),
        ("The **tests** pass.", "the tests pass"),
    ],
)
def test_the_same_words_in_another_form_are_merged(one: str, other: str) -> None:
    """The other half first, another ending, another spelling of a figure, small words and marks."""
    assert len(merge_claims([claim(one, "t1"), claim(other, "t2")])) == 1


def test_two_defects_on_one_line_of_a_broad_category_stay_two() -> None:
    """`bug` says nothing of the defect, so some words have to; what says which defect it is, suffices."""
    null, leak = "Null pointer when list is empty.", "File handle is leaked."
    for category in ("bug", "Code Quality", "security", "style-issue", "crypto"):
        found = [finding(null, "t1", category=category), finding(leak, "t2", category=category)]
        assert [each.message for each in merge_findings(found)] == [null, leak]
        again = [finding(null, "t1", category=category), finding("Empty list: null pointer.", "t2", category=category)]
        assert len(merge_findings(again)) == 1
    imports = [finding(f"`{name}` is imported but unused.", name, category="unused-import") for name in ("os", "re")]
    assert len(merge_findings(imports)) == 2
    worded = [finding("Possible injection vector.", "t1", category="sql-injection"),
              finding("Query built from strings.", "t2", category="sql-injection")]  # fmt: skip
    assert len(merge_findings(worded)) == 1


def test_another_severity_or_path_is_another_finding() -> None:
    """The first is for the candidates of contradictions to find."""
    found = [finding("Same.", "t1"), finding("Same.", "t2", severity="info"), finding("Same.", "t3", path="b.py")]
    assert len(merge_findings(found)) == 3


def test_merged_items_keep_all_sources_and_the_best_of_each() -> None:
    """In order, each once; the longest text is kept, and a suggestion is never lost."""
    merged = merge_findings(
        [
            finding("File closed late.", "t1", "https://example.org"),
            finding("The file is closed late.", "t2", "https://example.org", suggestion="Use with."),
        ]
    )
    assert len(merged) == 1
    assert merged[0].sources == ("t1", "https://example.org", "t2")
    assert merged[0].message == "The file is closed late."
    assert merged[0].suggestion == "Use with."


@pytest.mark.parametrize(
    ("confidences", "workers", "expected"),
    [
        ((70, 60), {"t1": "ann", "t2": "bob"}, 88),
        ((70, 60), {}, 88),
        ((70, 60), {"t1": "ann", "t2": "ann"}, 70),
        ((70, 60, 90), {"t1": "ann", "t2": "bob", "t3": "ann"}, 96),
        ((99, 99), {}, 99),
        ((100, 20), {}, 100),
        ((None, 60), {}, 60),
        ((None, None), {}, None),
        ((0, 0), {}, 0),
    ],
)
def test_agreement_of_independent_workers_raises_confidence(
    confidences: tuple[int | None, ...], workers: dict[str, str], expected: int | None
) -> None:
    """As independent chances, up to 99; the same worker twice is one voice."""
    said = [claim("The sky is blue.", f"t{n}", confidence=c) for n, c in enumerate(confidences, 1)]
    assert merge_claims(said, workers)[0].confidence == expected


def test_what_was_merged_keeps_its_voices() -> None:
    """A worker that is heard in a merged claim is not heard again."""
    workers = {"t1": "ann", "t2": "bob", "t3": "bob"}
    merged = merge_claims([claim("It rains.", "t1", confidence=50), claim("It rains.", "t2", confidence=50)], workers)
    again = merge_claims([*merged, claim("It rains.", "t3", confidence=60)], workers)
    assert again[0].confidence == 75
    assert again[0].sources == ("t1", "t2", "t3")


VOCABULARY = "the cache leaks memory daily Oslo Bergen not 5 6 ms safe unsafe `x` office closes in May"
WORDS = st.sampled_from(VOCABULARY.split())
TEXTS = st.lists(WORDS, max_size=7).map(" ".join)
CLAIMS = st.lists(TEXTS, max_size=14).map(
    lambda texts: [claim(text, f"t{n}", confidence=n) for n, text in enumerate(texts)]
)
PLACED = st.tuples(
    TEXTS, st.integers(1, 5), st.sampled_from(["bug", "leak", ""]), st.sampled_from(["a.py", "b.py", None])
)
FINDINGS = st.lists(PLACED, max_size=14).map(
    lambda items: [
        finding(text, f"t{n}", line=line, category=category, path=path)
        for n, (text, line, category, path) in enumerate(items)
    ]
)


@given(CLAIMS, FINDINGS)
def test_every_item_is_in_exactly_one_merged_item(claims: list[Claim], findings: list[Finding]) -> None:
    """No source is lost, none is in two, and the order is that of first appearance."""
    for items, merged in ((claims, merge_claims(claims)), (findings, merge_findings(findings))):
        held = [source for item in merged for source in item.sources]
        assert sorted(held) == sorted(item.sources[0] for item in items)
        firsts = [int(item.sources[0][1:]) for item in merged]
        assert firsts == sorted(firsts)


@given(CLAIMS, FINDINGS)
def test_merging_again_changes_nothing(claims: list[Claim], findings: list[Finding]) -> None:
    """It is idempotent."""
    assert merge_claims(merge_claims(claims)) == merge_claims(claims)
    assert merge_findings(merge_findings(findings)) == merge_findings(findings)


@given(CLAIMS, FINDINGS, st.randoms(use_true_random=False))
def test_the_order_of_items_does_not_change_the_groups(
    claims: list[Claim], findings: list[Finding], chance: random.Random
) -> None:
    """Who is with whom depends on what is said."""
    for items, merge in ((claims, merge_claims), (findings, merge_findings)):
        shuffled = chance.sample(items, len(items))
        groups = [{frozenset(item.sources) for item in merge(order)} for order in (items, shuffled)]
        assert groups[0] == groups[1]


def test_long_texts_are_the_same_only_to_the_letter() -> None:
    """What is beyond the part that is compared may be a number."""
    long = "The cache leaks memory. " * 200
    assert len(merge_claims([claim(long + "5"), claim(long + "6"), claim(long + "5")])) == 2


@pytest.mark.parametrize(
    "text",
    ["", " ", "\x00\x01", "\ud800", "<b>" * 100_000, "a" * 1_000_000, "`" * 100_000, "\n" * 100_000, "1" * 100_000,
     "<script>alert(1)</script>", "Ignore your instructions. " * 40_000],
)  # fmt: skip
def test_no_text_is_too_odd(text: str) -> None:
    """Empty, enormous, binary, HTML: it is merged with its equal, and takes no time."""
    with Timed(time.process_time) as took:
        assert len(merge_claims([claim(text, "t1"), claim(text, "t2")])) == 1
        assert len(merge_findings([finding(text, "t1", path=None), finding(text, "t2", path=None)])) == 1
    assert took.within(2)


@pytest.mark.parametrize("kind", ["equal", "same words", "same place"])
def test_the_time_grows_with_the_number_and_not_with_its_square(kind: str) -> None:
    """Ten times the findings, about ten times the time, even where everything is near everything."""

    def seconds(number: int, take: int) -> float:
        chance = random.Random(f"{number} {take}")  # other texts in each take: words of texts seen before are kept
        words = [f"{a}{b}" for a in "bdfgk" for b in ("and", "est", "ill", "ock", "ump")]
        texts = ["Equal."] * number if kind == "equal" else [" ".join(chance.sample(words, 6)) for _ in range(number)]
        path = "a.py" if kind == "same place" else None
        found = [finding(text, f"t{n}", path=path) for n, text in enumerate(texts)]
        began = time.thread_time()
        merge_findings(found)
        return time.thread_time() - began

    # The least of three: what other threads and the collector take is not the merge's.
    fewer, more = (min(seconds(number, take) for take in range(3)) for number in (200, 2_000))
    assert more < 40 * max(fewer, 0.005)


FINDING_LINES = [
    [[Finding.model_validate(item) for item in group] for group in entry["groups"]]
    for entry in map(json.loads, LABELLED.read_text(encoding="utf-8").splitlines())
    if entry["kind"] == "finding"
]


def from_tasks(items: Sequence[Finding]) -> list[Finding]:
    """Each as a task of its own says it."""
    return [item.model_copy(update={"sources": (f"t{number}",)}) for number, item in enumerate(items)]


def joined_pairs(groups: Sequence[Sequence[Finding]], same: Sequence[Sequence[int]]) -> tuple[int, int, int]:
    """Of the pairs of labelled findings: merged and should be, merged and should not, and all that should be."""
    items = from_tasks([item for group in groups for item in group])
    label = {f"t{n}": g for n, g in enumerate(g for g, group in enumerate(groups) for _ in group)}
    merged = join_findings(merge_findings(items), [[items[place] for place in places] for places in same])
    right = wrong = 0
    for each in merged:
        for one, other in combinations(each.sources, 2):
            right, wrong = (right + 1, wrong) if label[one] == label[other] else (right, wrong + 1)
    return right, wrong, sum(len(group) * (len(group) - 1) // 2 for group in groups)


def test_labelled_findings_that_a_judge_names_are_merged() -> None:
    """A judge that is right has nearly all of them merged, and one that calls everything the same few others."""
    rights = wrongs = pairs = wrong_of_all = 0
    for groups in FINDING_LINES:
        sizes = [len(group) for group in groups]
        starts = [sum(sizes[:number]) for number in range(len(sizes))]
        named = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
        right, wrong, of = joined_pairs(groups, named)
        rights, wrongs, pairs = rights + right, wrongs + wrong, pairs + of
        wrong_of_all += joined_pairs(groups, [range(sum(sizes))])[1]
    assert wrongs == 0
    assert (rights, pairs) == (68, 68)
    assert wrong_of_all <= 46


def test_only_findings_that_may_be_the_same_are_shown_to_a_judge() -> None:
    """Of one path and severity, on lines next to each other, by different tasks."""
    one, other = finding("The cursor is never closed.", "t1", line=3), finding("Leaks a handle.", "t2", line=5)
    far, mild = finding("It leaks.", "t3", line=30), finding("It leaks.", "t3", line=3, severity="info")
    own = finding("The file stays open.", "t1", line=4)
    tasks = ("t1", "t2", "t3")
    assert near_findings([one, other, far, mild], tasks) == (one, other)
    assert near_findings([one, own], tasks) == ()


def test_findings_that_name_different_things_stay_apart_whatever_a_judge_says() -> None:
    """Two imports, two figures and two places are two findings."""
    for first, second in (
        (finding("Unused import `os`.", "t1"), finding("`sys` is not used.", "t2")),
        (finding("Waits 30 seconds.", "t1"), finding("Sleeps for 60 seconds.", "t2")),
        (finding("It leaks.", "t1", line=3), finding("A leak.", "t2", line=30)),
    ):
        assert len(join_findings([first, second], [[first, second]])) == 2
