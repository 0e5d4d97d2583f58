"""Outcomes -> pairs of statements of different tasks that may contradict each other, for a judge to decide.

A pair is a candidate if it speaks of the same thing and differs in a number, a date, a verdict (safe and unsafe, pass
and fail, rise and fall), a severity, or in that one side denies what the other says. The same thing: at least
`LEAST_ALIKE` of the words, the same names, and no two words that stand for each other; of findings also the same
place. Findings differ in severity only if they would be merged otherwise. Figures of different years or dates are about
different things. Units are compared as they are written: 45 min and 0.75 h are two figures. A value under a key alone
(`salary_nok`) is about what its task was asked: of tasks that name different things it is no pair.

One clash is one candidate: what the same two tasks say again about the same thing, with the same difference, is not
listed a second time. Claims come first, so it is they that are listed and not the summary. Markdown is no part of a
statement.

Measured on tests/synthesizer/labelled/contradictions.jsonl: recall 0.92, precision 0.92 on the half the rules were made
with, 0.96 and 0.96 on the other half. From 0.7 on the threshold costs recall; longer sentences need it as low as 0.4.

Statements are claims, findings, the sentences of summaries and outputs, and the values of outputs that are data; of
analyzers, their findings alone. Those that say the same count once, and each is paired with a bounded number of earlier
ones, so that the cost grows with statements and candidates, never with pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from chargehand.synthesizer.dedupe import differ_in_severity_alone, lines_of, same_place
from chargehand.synthesizer.sentences import entries, is_record, sentences
from chargehand.synthesizer.similarity import (
    WordIndex,
    compatible_names,
    dice,
    is_graded,
    is_opposed,
    rivals,
    same_start,
)
from chargehand.synthesizer.strip_markdown import one_line
from chargehand.synthesizer.wording import Wording, wording
from chargehand.values.outcome import Finding, Outcome
from chargehand.values.plan import Task

LEAST_ALIKE: Final = 0.4
# Who was given the other's result, and speaks of something like it, has gone on from there: costs from salaries.
LEAST_ALIKE_OF_READERS: Final = 0.7
_MOST_STEPS: Final = 3
_MOST_AT_PLACE: Final = 16
# Earlier clashes of two tasks, with a figure or a word in common, that a new one is compared with.
_MOST_CLASHES: Final = 16
_MOST_LINES: Final = 200

Kind: TypeAlias = Literal["number", "date", "verdict", "severity", "polarity"]


@dataclass(frozen=True, slots=True)
class Statement:
    """What a task says, in its own words."""

    task: str
    text: str
    confidence: int | None
    sources: tuple[str, ...]

    @property
    def told(self) -> str:
        return f"{self.task}: {self.text}"


@dataclass(frozen=True, slots=True)
class ContradictionCandidate:
    """Two statements of different tasks that may contradict each other. Candidates of one subject have it in common."""

    subject: str
    kind: Kind
    first: Statement
    second: Statement


@dataclass(frozen=True, slots=True)
class _Entry:
    statement: Statement
    wording: Wording
    finding: Finding | None = None
    # Of a value in data: it is compared with the values other tasks give under the same label, and with nothing else.
    label: str | None = None
    # Of such a value that nothing in the data names: what its task was asked.
    about: Wording | None = None


def candidates(outcomes: Sequence[Outcome], tasks: Sequence[Task] = ()) -> tuple[ContradictionCandidate, ...]:
    """The candidates of all outcomes that are done or partial, in the order of their second statement.

    `tasks` are theirs, as far as they are known.
    """
    asked = {task.id: task.instruction for task in tasks}
    pairs: list[tuple[int, int, Kind]] = []
    told = _Told({task.id: frozenset(task.depends_on) for task in tasks})
    for outcome in outcomes:
        if outcome.ok or outcome.partial:
            for entry in _entries(outcome, told, asked.get(outcome.task, "")):
                pairs.extend(told.add(entry))
    return tuple(_name_candidates(told.entries, pairs))


class _Told:
    """The entries so far, each wording by two tasks at most; a new one is compared with those that are near."""

    def __init__(self, read: Mapping[str, frozenset[str]]) -> None:
        # Task -> the tasks whose results it was given.
        self._read = read
        self.entries: list[_Entry] = []
        self._index = WordIndex(lambda wording: wording.topics)
        self._keys: list[Hashable] = []
        # Two, since a task may contradict itself: then another one that says the same stands against it.
        self._tasks: dict[Hashable, list[str]] = {}
        # The same lists by the words themselves, of entries without a place: most of what is repeated is so literally.
        self._said: dict[str, list[str]] = {}
        self._paired: set[tuple[Hashable, Hashable]] = set()
        self._at: dict[tuple[str, int], list[int]] = {}
        # Two tasks, what they differ in, and a figure or a word of it -> the clashes so far.
        self._clashes: dict[Hashable, list[tuple[int, int]]] = {}
        # An entry that only repeats another one of its task in a clash -> that other one.
        self._repeats: dict[int, int] = {}

    def knows(self, task: str, text: str) -> bool:
        """Whether adding this would change nothing, told without reading it."""
        tasks = self._said.get(text)
        return tasks is not None and (len(tasks) == 2 or task in tasks)

    def add(self, entry: _Entry) -> Iterator[tuple[int, int, Kind]]:
        """The pairs of a new entry with earlier ones, one for each two wordings and each clash."""
        said, finding = entry.wording, entry.finding
        key = (
            said.topics,
            said.amounts,
            said.negated,
            said.answers,
            said.marks,
            said.tail,
            finding and (finding.severity, finding.path, finding.line, finding.end_line, finding.category),
            entry.label,
            entry.about and entry.about.names,
        )
        tasks = self._tasks.setdefault(key, [])
        if finding is None and entry.label is None:
            self._said[entry.statement.text] = tasks
        if entry.statement.task in tasks or len(tasks) == 2:
            return
        tasks.append(entry.statement.task)
        near = self._near(entry)
        number = self._remember(entry, key)
        for other in near:
            earlier, pair = self.entries[other], (self._keys[other], key)
            if earlier.statement.task == entry.statement.task or pair in self._paired:
                continue
            if self._goes_on_from(earlier, entry) or self._goes_on_from(entry, earlier):
                continue
            if kind := _difference(earlier, entry):
                self._paired.update((pair, (key, self._keys[other])))
                if not self._is_repeated(other, number, kind):
                    yield self._repeats.get(other, other), self._repeats.get(number, number), kind

    def _is_repeated(self, first: int, second: int, kind: Kind) -> bool:
        """Whether the same two tasks differ in the same about the same thing in an earlier pair. If not, it is kept."""
        one, other = self.entries[first], self.entries[second]
        tasks = (one.statement.task, other.statement.task, kind)
        values = _clashing(one.wording, other.wording) if kind in ("number", "date") else frozenset[Hashable]()
        held = [
            self._clashes.setdefault((*tasks, each), []) for each in values or one.wording.topics | other.wording.topics
        ]
        for before in dict.fromkeys(clash for clashes in held for clash in clashes):
            mine, theirs = (self.entries[number] for number in before)
            if not _says_again(one.wording, mine.wording) or not _says_again(other.wording, theirs.wording):
                continue
            known = _clashing(mine.wording, theirs.wording)
            if not _clashing(one.wording, other.wording, known) if values else _alike((one, mine), (other, theirs)):
                self._repeats.update({new: old for new, old in zip((first, second), before, strict=True) if new != old})
                return True
        for clashes in held:
            if len(clashes) < _MOST_CLASHES:
                clashes.append((first, second))
        return False

    def _goes_on_from(self, earlier: _Entry, entry: _Entry) -> bool:
        """Whether the entry is what its task made of the other's result, and not the same said otherwise."""
        if not self._has_read(entry.statement.task, earlier.statement.task):
            return False
        return dice(earlier.wording.topics, entry.wording.topics) < LEAST_ALIKE_OF_READERS

    def _has_read(self, task: str, other: str) -> bool:
        """Whether it was given the other's result, or one of those that were, a few steps back at the most."""
        level = self._read.get(task, frozenset())
        for _ in range(_MOST_STEPS):
            if other in level or not level:
                break
            level = frozenset[str]().union(*(self._read.get(each, ()) for each in level))
        return other in level

    def _remember(self, entry: _Entry, key: Hashable) -> int:
        number = self._index.add(entry.wording)
        self.entries.append(entry)
        self._keys.append(key)
        for place in _places(entry):
            held = self._at.setdefault(place, [])
            if len(held) < _MOST_AT_PLACE:
                held.append(number)
        return number

    def _near(self, entry: _Entry) -> list[int]:
        found = {number: None for _, number in self._index.alike(entry.wording, LEAST_ALIKE)}
        for place in _places(entry):
            found.update(dict.fromkeys(self._at.get(place, ())))
        return sorted(found)


def _difference(one: _Entry, other: _Entry) -> Kind | None:
    """What two statements differ in, if they speak of the same thing."""
    if one.label != other.label:
        return None
    if one.about is not None and other.about is not None and not compatible_names(one.about, other.about):
        return None  # the salary, asked of two places
    if one.finding is not None and other.finding is not None:
        return _difference_of_findings(one.finding, other.finding, one.wording, other.wording)
    return _difference_in_words(one.wording, other.wording)


def _difference_of_findings(one: Finding, other: Finding, mine: Wording, theirs: Wording) -> Kind | None:
    """What two findings differ in: about the same place and in much the same words, since a line may have two bugs."""
    if differ_in_severity_alone(one, other):
        return "severity"
    if not same_place(one, other) or dice(mine.topics, theirs.topics) < LEAST_ALIKE:
        return None
    return _difference_in_words(mine, theirs)


def _difference_in_words(one: Wording, other: Wording) -> Kind | None:
    # The cheapest question first: most that are near each other name different things.
    if not compatible_names(one, other) or (kind := _kind(one, other)) is None:
        return None
    return kind if _same_subject(one, other) else None


def _kind(one: Wording, other: Wording) -> Kind | None:
    opposite = is_opposed(one, other)
    if opposite != (one.negated != other.negated):
        return "verdict" if opposite else "polarity"
    if opposite:
        return None  # `pass` and `does not fail`: denied twice
    if is_graded(one, other):
        return "verdict"
    days, numbers = _days_differ(one, other), _numbers_differ(one, other)
    if days and numbers:
        return None
    if days:
        return "date" if any("-" in day for day in one.days | other.days) else "number"
    return "number" if numbers else None


def _same_subject(one: Wording, other: Wording) -> bool:
    if not compatible_names(one, other) or not same_start(one, other):
        return False
    return not rivals(one, other)


def _says_again(one: Wording, other: Wording) -> bool:
    """Whether two statements of one task are about the same thing, and neither denies the other."""
    if one == other:
        return True
    return not one.topics.isdisjoint(other.topics) and _same_subject(one, other) and _kind(one, other) is None


def _alike(*sides: tuple[_Entry, _Entry]) -> bool:
    return any(dice(one.wording.topics, other.wording.topics) >= LEAST_ALIKE for one, other in sides)


def _clashing(one: Wording, other: Wording, known: frozenset[Hashable] = frozenset()) -> frozenset[Hashable]:
    """The figures and days that two statements differ in, but for those that are known."""
    mine, theirs = _figures(one), _figures(other)
    found: set[Hashable] = set()
    for name in mine.keys() & theirs.keys():
        first, second = ({(name, value) for value in side[name]} - known for side in (mine, theirs))
        if not (first <= second or second <= first):
            found |= first ^ second
    return frozenset(found)


def _figures(said: Wording) -> dict[str, set[Hashable]]:
    found = _quantities(said)
    if said.days:
        found["day"] = set(said.days)
    return found


def _days_differ(one: Wording, other: Wording) -> bool:
    return bool(one.days and other.days) and not (one.days <= other.days or other.days <= one.days)


def _numbers_differ(one: Wording, other: Wording) -> bool:
    mine, theirs = _quantities(one), _quantities(other)
    return any(
        name in theirs and not (values <= theirs[name] or theirs[name] <= values) for name, values in mine.items()
    )


def _quantities(said: Wording) -> dict[str, set[Hashable]]:
    found: dict[str, set[Hashable]] = {}
    for unit, value in said.numbers:
        found.setdefault(unit, set()).add(value)
    return found


def _name_candidates(
    entries: Sequence[_Entry], pairs: Sequence[tuple[int, int, Kind]]
) -> Iterator[ContradictionCandidate]:
    """Candidates with a subject: that of the first pair among those that hang together."""
    roots: dict[int, int] = {}

    def root(number: int) -> int:
        while (above := roots.setdefault(number, number)) != number:
            roots[number] = roots[above]
            number = above
        return number

    for first, second, _ in pairs:
        low, high = sorted((root(first), root(second)))
        roots[high] = low
    subjects: dict[int, str] = {}
    for first, second, kind in pairs:
        subject = subjects.setdefault(root(first), _subject(entries[first], entries[second]))
        yield ContradictionCandidate(subject, kind, entries[first].statement, entries[second].statement)


def _subject(one: _Entry, other: _Entry) -> str:
    if one.finding is not None and other.finding is not None and _places(one):
        path, first = _places(one)[0]
        return f"{path}:{first} {one.finding.category}".strip()
    return " ".join(one.statement.text.split())[:120].rstrip(" .")


def _places(entry: _Entry) -> list[tuple[str, int]]:
    if entry.finding is None or not entry.finding.path or (lines := lines_of(entry.finding)) is None:
        return []
    path = entry.finding.path.removeprefix("./")
    return [(path, line) for line in lines[: _MOST_LINES + 1]]


def _entries(outcome: Outcome, told: _Told, asked: str) -> Iterator[_Entry]:
    """What a task says that was not told yet: claims and findings before the text that repeats them."""
    for claim in outcome.claims:
        if told.knows(outcome.task, claim.statement):
            continue
        words = one_line(claim.statement)
        yield _Entry(Statement(outcome.task, words, claim.confidence, claim.sources), wording(words))
    for finding in outcome.findings:
        words = one_line(finding.message)
        said = Statement(outcome.task, words, finding.confidence, finding.sources)
        yield _Entry(said, wording(words), finding)
    if is_record(outcome):
        return
    for sentence in sentences(outcome):
        if not told.knows(outcome.task, sentence):
            yield _Entry(Statement(outcome.task, sentence, outcome.confidence, (outcome.task,)), wording(sentence))
    for leaf in entries(outcome):
        said = Statement(outcome.task, leaf.text, outcome.confidence, (outcome.task,))
        about = None if leaf.named else wording(asked)
        yield _Entry(said, wording(leaf.text), label=leaf.label, about=about)
