"""The rows of the table: each asks the same cases of a team and of one plain prompt, and counts what is right.

A measure is a share of cases. Seconds and tokens are means a case. What code can check is checked by code: figures and
names, sources by the line they name, statuses by whether the answer is right. Nothing here is judged by a model.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import chargehand
from bench.judgement.kept import KeptReplies
from bench.judgement.plain import PlainReply, ask_plainly
from bench.judgement.team_run import CommandLine, TeamRun

HERE = Path(__file__).parent
TEAMS = Path(chargehand.__file__).parent / "teams"
NOT_STATED = re.compile(
    r"\bnot (?:\w+ ){0,3}(?:stated|given|mentioned|specified|provided|contain|found|known|say|state|include|available|"
    r"answer|explicitly)|n't (?:\w+ ){0,3}(?:state|mention|say|specify|provide|contain|give|include|find)|\bno "
    r"(?:information|mention|figure|answer)|unknown|unable to|cannot be (?:found|determined)|missing",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"([\w.-]+\.md):(\d+)")
_FIGURE = re.compile(r"\d[\d.,:]*\d|\d")


@dataclass(slots=True)
class Row:
    """Counts of one row: for each measure (right, of) with the team and with the plain prompt."""

    name: str
    team: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    plain: dict[str, list[bool]] = field(default_factory=dict[str, list[bool]])
    team_cost: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    plain_cost: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])
    notes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def count(self, of: dict[str, list[bool]], **measures: bool) -> None:
        for name, value in measures.items():
            of.setdefault(name.replace("_", " "), []).append(value)


@dataclass(frozen=True, slots=True)
class Trial:
    """The model under trial, how many cases of a row are asked, and the replies that there are already.

    A run of the team is of a `commit`; a plain reply is of the model alone. `folder` holds the files of the cases.
    """

    line: CommandLine
    most: int
    cases: dict[str, Any]
    pairs: list[tuple[str, str, bool]]
    kept: KeptReplies
    commit: str
    folder: Path

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def ask_plainly(self, prompt: str, most_tokens: int = 300) -> PlainReply:
        key = f"plain {self.line.model} {most_tokens} {prompt}"
        if (known := self.kept.get(key)) is not None:
            return PlainReply(**known)
        reply = ask_plainly(self.line.base_url, self.line.model, prompt, most_tokens)
        self.kept.keep(key, asdict(reply))
        return reply

    def call(self, case: str, *arguments: str, settings: str = "") -> TeamRun:
        """What the command line printed for a case, whose name is the row and what is asked."""
        key = f"team {self.line.model} {self.commit} {case}"
        if (known := self.kept.get(key)) is not None:
            return TeamRun(**known)
        run = self.line.call(*arguments, settings=settings)
        self.kept.keep(key, asdict(run))
        return run


def answers(trial: Trial) -> Row:
    """Questions about a given file: right, or honestly not stated; sources that exist and hold the answer."""
    row = Row("answers by run")
    for case in _spread(trial.cases["questions"], trial.most):
        file = trial.folder / "material" / case["file"]
        lines = file.read_text(encoding="utf-8").splitlines()
        got = trial.call(f"answers {case['ask']}", "run", case["ask"], "--with", str(file), "--json", "-q")
        right = _is_right(got.answer, case)
        complete = got.printed.get("status") == "complete"
        sources = [found for text in _sources(got.printed) for found in _SOURCE.findall(text)]
        false = [found for found in sources if found[0] != case["file"] or not 1 <= int(found[1]) <= len(lines)]
        # That the material does not state it may be an answer or a gap.
        truth = complete == right or (case["right"] is None and right)
        row.count(row.team, right=right, complete_and_wrong=complete and not right, a_false_source=bool(false))
        row.count(row.team, status_tells_the_truth=truth)
        row.team_cost.append((got.seconds, got.tokens))
        plain = trial.ask_plainly(f"{file.read_text(encoding='utf-8')}\n\n{case['ask']}")
        plain_right = _is_right(plain.text, case)
        row.count(row.plain, right=plain_right, complete_and_wrong=not plain_right)
        for of, is_right, is_complete in ((row.team, right, complete), (row.plain, plain_right, True)):
            if case["right"] is not None:
                row.count(of, right_where_it_is_stated=is_right)
            else:
                row.count(of, said_or_partial_where_it_is_not=is_right or not is_complete)
        row.plain_cost.append((plain.seconds, plain.tokens))
        status = got.printed.get("status") or f"exit {got.code}"
        row.notes.append({"ask": case["ask"], "status": status, "answer": got.answer, "plain": plain.text})
        trial.say(f"{'right' if right else 'WRONG':6} {status:10} {got.seconds:5.0f} s  {case['ask']}")
    return row


def summaries(trial: Trial) -> Row:
    """Sections summarised by one worker: the facts kept, no figure that the section does not have."""
    row = Row("summaries")
    sections = [(file, title, facts) for file, each in trial.cases["facts"].items() for title, facts in each]
    for file, title, facts in _spread(sections, trial.most):
        path = trial.folder / "material" / file
        text_of_file = path.read_text(encoding="utf-8")
        section = _section(text_of_file, title)
        ask = f"Summarise the section '{title}' of {file} in two sentences."
        task = {"id": "t1", "worker": "researcher", "instruction": ask, "context": "", "depends_on": []}
        task["success_criterion"] = "Two sentences with the figures of that section, unchanged."
        plan = trial.line.folder / "plan.json"
        plan.write_text(json.dumps({"goal": ask, "tasks": [task]}), encoding="utf-8")
        got = trial.call(ask, "run", ask, "--plan", str(plan), "--with", str(path), "--json", "-q")
        plain = trial.ask_plainly(f"{text_of_file}\n\n{ask}")
        for of, text in ((row.team, got.answer), (row.plain, plain.text)):
            row.count(of, half_of_the_facts=_keeps(text, facts) >= 0.5, no_foreign_figure=not _foreign(text, section))
        row.team_cost.append((got.seconds, got.tokens))
        row.plain_cost.append((plain.seconds, plain.tokens))
        row.notes.append({"ask": ask, "answer": got.answer, "plain": plain.text, "error": got.error})
        trial.say(f"{_keeps(got.answer, facts):.2f} of the facts  {got.seconds:5.0f} s  {ask}")
    return row


def plans(trial: Trial) -> Row:
    """Requests planned: a plan that can run, the request's own figures and names in its tasks, nothing copied."""
    row = Row("plans")
    example = _words(TEAMS / "general" / "examples")
    for case in _spread(trial.cases["plans"], trial.most):
        request = case["request"]
        got = trial.call(f"plans {request}", "plan", request, "-q")
        prompt = f"{request}\n\nBreak this request into tasks for a team. Answer as a JSON list of task texts."
        plain = trial.ask_plainly(prompt, 600)
        texts = [f"{task['instruction']} {task.get('context') or ''}" for task in got.printed.get("tasks", [])]
        listed = _listed(plain.text)
        for of, tasks, valid in ((row.team, texts, got.code == 0), (row.plain, listed, bool(listed))):
            row.count(
                of,
                valid=valid,
                keeps_figures_and_names=valid and _keeps(" ".join(tasks), case["keeps"]) == 1,
                nothing_copied=valid and not any(_copied(task, request, example) for task in tasks),
                several_tasks_only_where_it_can_be=valid and (len(tasks) > 1) == case["wide"],
            )
        row.team_cost.append((got.seconds, got.tokens))
        row.plain_cost.append((plain.seconds, plain.tokens))
        row.notes.append({"request": request, "tasks": texts, "plain": plain.text, "error": got.error})
        trial.say(f"{'valid' if got.code == 0 else 'NONE ':6} {len(texts)} tasks  {got.seconds:5.0f} s  {request}")
    return row


def routing(trial: Trial) -> Row:
    """Labelled support requests to one of three workers; the team's own rules are taken away first."""
    row = Row("routing")
    team = trial.line.folder / "support"
    shutil.copytree(TEAMS / "support", team, dirs_exist_ok=True)
    settings = (team / "team.toml").read_text(encoding="utf-8")
    (team / "team.toml").write_text(settings.split("[[routes]]")[0], encoding="utf-8")
    labelled = trial.cases.get("routing") or [json.loads(line) for line in _lines(team / "evals" / "routing.jsonl")]
    workers = {path.stem: _description(path) for path in sorted((team / "workers").glob("*.md"))}
    listing = "\n".join(f"- {name}: {text}" for name, text in workers.items())
    for case in _spread(labelled, trial.most):
        request, right = case["request"], case["primary"]
        got = trial.call(f"routing {request}", "plan", request, "--team", str(team), "-q")
        tasks = got.printed.get("tasks") or [{}]
        plain = trial.ask_plainly(
            f"Workers:\n{listing}\n\nRequest: {request}\n\nWhich worker? Answer with the name only."
        )
        row.count(row.team, right=tasks[0].get("worker") == right)
        row.count(row.plain, right=_first_of(workers, plain.text) == right)
        row.team_cost.append((got.seconds, got.tokens))
        row.plain_cost.append((plain.seconds, plain.tokens))
        row.notes.append({"request": request, "right": right, "got": tasks[0].get("worker"), "plain": plain.text})
        trial.say(f"{tasks[0].get('worker')!s:15} {right:15} {got.seconds:5.0f} s  {request}")
    return row


def contradictions(trial: Trial) -> Row:
    """Pairs of statements by two workers: found where they cannot both be true, not reported where they can."""
    row = Row("contradictions")
    for first, second, contradict in _spread(trial.pairs, max(trial.most, 24)):
        got = _state_both(trial, first, second)
        found = bool(got.printed.get("contradictions"))
        prompt = f"A: {first}\nB: {second}\n\nCan A and B both be true? Answer yes or no."
        plain = trial.ask_plainly(prompt)
        said = plain.text.strip().lower().startswith("no")
        for of, reported in ((row.team, found), (row.plain, said)):
            row.count(of, **({"found": reported} if contradict else {"false_alarm": reported}))
        row.team_cost.append((got.seconds, got.tokens))
        row.plain_cost.append((plain.seconds, plain.tokens))
        row.notes.append({"pair": [first, second], "contradict": contradict, "found": found, "plain": plain.text})
        trial.say(f"{'found' if found else '-':6} {contradict!s:6} {got.seconds:5.0f} s  {first} / {second}")
    return row


ROWS: dict[str, Callable[[Trial], Row]] = {
    "answers": answers,
    "plans": plans,
    "routing": routing,
    "contradictions": contradictions,
    "summaries": summaries,
}


def _state_both(trial: Trial, first: str, second: str) -> TeamRun:
    """A run whose two workers state the two sentences, by script, and whose judge is the model under trial."""
    folder = trial.line.folder
    workers = [
        {"when": {"role": "worker", "task": task}, "reply": {"json": {"summary": said, "output": said}}}
        for task, said in (("t1", first), ("t2", second))
    ]
    answer = {"answer": f"{first} [t1] {second} [t2]", "contradictions": [], "gaps": [], "confidence": 50}
    replies = [*workers, {"when": {"role": "synthesizer"}, "reply": {"json": answer}}]
    (folder / "script.json").write_text(json.dumps({"replies": replies}), encoding="utf-8")
    tasks = [
        {
            "id": id,
            "worker": "researcher",
            "instruction": "Report what your source says about the subject of the request.",
            "context": "",
            "success_criterion": "One statement.",
            "depends_on": [],
        }
        for id in ("t1", "t2")
    ]
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"goal": "What do the two sources say?", "tasks": tasks}), encoding="utf-8")
    scripted = f'"scripted:{folder / "script.json"}"'
    real = f'"trial:{trial.line.model}"'
    settings = f"\n[models]\nmedium = {scripted}\n[models.judge]\nmodel = {real}\n"
    case = f"contradictions {first} / {second}"
    return trial.call(case, "run", "--plan", str(plan), "--json", "-q", settings=settings)


def _spread(cases: list[Any], most: int) -> list[Any]:
    """At most so many cases, evenly over all of them."""
    if len(cases) <= most:
        return cases
    return [cases[number * len(cases) // most] for number in range(most)]


def _is_right(answer: str, case: dict[str, Any]) -> bool:
    if case["right"] is None:
        said = NOT_STATED.search(answer)
        # The question's own words, said again, are not that.
        return not answer.strip() or (said is not None and said[0].lower() not in case["ask"].lower())
    return bool(re.search(case["right"], answer, re.IGNORECASE))


def _sources(report: dict[str, Any]) -> Iterable[str]:
    for outcome in report.get("outcomes") or []:
        for claim in outcome.get("claims") or []:
            yield from claim.get("sources") or []
    yield str(report.get("answer") or "")


def _keeps(text: str, facts: list[str]) -> float:
    plain = text.replace(",", "").lower()
    return sum(fact.replace(",", "").lower() in plain for fact in facts) / len(facts)


def _foreign(text: str, source: str) -> bool:
    """Whether the text has a figure over ten that the source does not have; citations of tasks are not figures."""
    known = {figure.replace(",", "") for figure in _FIGURE.findall(source)}
    told = (figure.replace(",", "").rstrip(".") for figure in _FIGURE.findall(re.sub(r"\[[^\]]*\]", "", text)))
    return any(figure not in known and figure.isdigit() and int(figure) > 10 for figure in told)


def _section(text: str, title: str) -> str:
    return text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def _copied(task: str, request: str, example: set[str]) -> bool:
    """Whether eight words in a row are those of a shipped example and not of the request."""
    return any(run in example and run not in request.lower() for run in _runs(task))


def _runs(text: str) -> Iterable[str]:
    words = re.findall(r"\w+", text.lower())
    return (" ".join(words[start : start + 8]) for start in range(len(words) - 7))


def _words(folder: Path) -> set[str]:
    return {run for path in folder.glob("*.json") for run in _runs(path.read_text(encoding="utf-8"))}


def _listed(text: str) -> list[str]:
    """The task texts in a plain reply: a JSON list, or of objects, in a fence or not."""
    found = re.search(r"\[.*\]", text, re.DOTALL)
    try:
        items = json.loads(found[0]) if found else []
    except ValueError:
        return []
    return [item if isinstance(item, str) else json.dumps(item) for item in cast("list[Any]", items)]


def _first_of(names: Iterable[str], text: str) -> str | None:
    places = {text.lower().find(name): name for name in names if name in text.lower()}
    return places[min(places)] if places else None


def _description(path: Path) -> str:
    found = re.search(r"^description: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()
