"""Runs on record: reported, compared, answered, cancelled, and given orders, whichever process runs them."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic_core import ValidationError, to_json

from chargehand.errors import NoOpenQuestion, RunOwned, UsageError
from chargehand.events import Event, RunEnded
from chargehand.record.home import Home
from chargehand.record.replay import replay
from chargehand.record.storage_errors import reading
from chargehand.runs.check_arguments import check_arguments
from chargehand.runs.prepared_team import PreparedTeam
from chargehand.runs.report_from_record import final_report, open_questions, report_so_far, unfinished_report
from chargehand.settings.script_path import found_from
from chargehand.values.base import JSON
from chargehand.values.effect import Question
from chargehand.values.order import OrderKind, new_order
from chargehand.values.report import Report
from chargehand.values.status_words import FINISHED, RunStatus

if TYPE_CHECKING:
    from chargehand.record.index import RunInfo
    from chargehand.runs.send_order import SentOrder
    from chargehand.runs.temporal.all_runs import NotedRun
    from chargehand.values.run_diff import RunDiff

# How long `cancel` waits for the owner to have stopped.
CANCEL_WAIT_S = 3.0
# How long `cancel` and the sender of an order wait for workers on other machines; one may just have died.
REMOTE_WAIT_S = 20.0


class RecordedRuns(PreparedTeam):
    """Questions and orders to a run that need no work on it."""

    async def cancel(self, run: str) -> tuple[RunStatus, bool]:
        """Stop a run, whoever has it: its status now, and whether this stopped it. Resumable."""
        run = self.find_run(run)
        if self.source.owner(run) is not None:
            self.source.request_cancel(run)
            return await self._stopped_by_owner(run)
        if not self.home.has(run):
            return self.report(run).status, False
        if not self.home.state(run).seq:
            return "interrupted", False  # stopped before anything of it was recorded
        with closing(self.home.open(run)) as journal:
            state = replay(journal.events(), run)
            if state.report is not None and (state.status in FINISHED or state.status == "cancelled"):
                return final_report(state).status, False
            with reading(f"of run {run}"):
                report = unfinished_report(state, "cancelled")
            budget = state.start["request"].get("budget")
            ended = RunEnded(status=report.status, report=report.to_json(), by="command", budget=budget)
            await journal.append([Event(run, state.seq + 1, time.time(), None, None, ended)], {})
        self.home.clear_cancel(run)
        self.home.note(run, status="cancelled", ended=time.time())
        return "cancelled", True

    async def _stopped_by_owner(self, run: str) -> tuple[RunStatus, bool]:
        """The owner looks for the request twice a second, and may end by itself before that."""
        wait_s = CANCEL_WAIT_S if self.home.has(run) else REMOTE_WAIT_S
        for _ in range(int(wait_s / 0.05)):
            if self.source.owner(run) is None:
                break
            await asyncio.sleep(0.05)
        else:
            return "running", False
        status = self.report(run).status
        if status == "cancelled":
            return status, True
        self.home.clear_cancel(run)
        # It died, or ended before it saw the request.
        return (status, False) if status in FINISHED else await self.cancel(run)

    async def steer(
        self,
        run: str,
        task: str,
        text: str = "",
        *,
        stop: bool = False,
        restart: bool = False,
        model: str | None = None,
        instruction: str | None = None,
        by: str = "python",
    ) -> SentOrder:
        """Order something of a task of a run, whichever process runs it.

        `text` comes as the words of a person before the next model call of the task's worker. With `stop` the task has
        failed for good, and `text` is the reason. With `restart` the task, also one that was stopped or has ended, and
        all that rests on it run again, if wanted with another model or instruction; `resume` continues a run that no
        process owns.
        """
        if stop + restart > 1 or ((model or instruction) and not restart) or (restart and text):
            raise UsageError("Give one of: words for the worker; stop; restart, with a model or an instruction.")
        if restart:
            model = None if model is None else found_from(model, Path.cwd())
            return await self._order("restart", run, by, task=task, text=instruction or "", model=model)
        if not stop and not text.strip():
            raise UsageError(f"There is nothing to order of {task}: give words for its worker, or stop or restart it.")
        return await self._order("stop" if stop else "tell", run, by, task=task, text=text)

    async def pause(self, run: str, *, by: str = "python") -> SentOrder:
        """Let a run begin nothing new. Calls in flight are finished; `resume` continues it."""
        return await self._order("pause", run, by)

    async def top_up(
        self,
        run: str,
        *,
        tokens: int | None = None,
        usd: float | None = None,
        deadline: float | None = None,
        by: str = "python",
    ) -> SentOrder:
        """Add to the limits of a run that another process runs: calls that wait continue at once.

        What had ended for lack of them runs again. `deadline` is in seconds from now. Without an owner, `resume` adds.
        """
        check_arguments(locals())
        return await self._order("top_up", run, by, tokens=tokens, usd=usd, deadline=deadline)

    async def unpause(self, run: str, *, by: str = "python") -> SentOrder:
        """Continue a paused run in the process that owns it; without one, `resume` continues it."""
        return await self._order("continue", run, by)

    async def _order(self, kind: OrderKind, run: str, by: str, **fields: object) -> SentOrder:
        from chargehand.runs.send_order import VERDICT_WAIT_S, send_order  # no run needs it

        name = self.find_run(run)
        try:
            order = new_order(kind, by=by, **fields)
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False)
            wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in found)
            raise UsageError(f"The order to {name} was not sent. Correct it: {wrong}.") from None
        # Words to a worker wait for its next call, on every machine; other orders wait only for another machine.
        wait_s = VERDICT_WAIT_S if kind == "tell" or self.home.has(name) else REMOTE_WAIT_S
        return await send_order(self.source, name, order, wait_s)

    def runs(self) -> tuple[RunInfo, ...]:
        """The runs on record, newest first: what `chargehand runs --json` prints."""
        return tuple(self.source.runs())

    def report(self, run: str) -> Report:
        """What the record says now: the final report, or how far it has come."""
        run = self.find_run(run)
        return report_so_far(self.source, self.source.state(run))

    def diff(self, a: str, b: str) -> RunDiff:
        """What differs between two runs, each as far as it has come: plans, tasks, cost, time and answers."""
        from chargehand.runs.compare_runs import compare_reports  # no run needs it

        return compare_reports(self.report(a), self.report(b))

    def questions(self, run: str) -> tuple[Question, ...]:
        """What the run asks a person and has no answer to, in the order it was asked; none once it has ended."""
        return open_questions(self.source.state(self.find_run(run)))

    async def answer(
        self, run: str, question: str, words: str | dict[str, JSON] | list[JSON], *, by: str = "python"
    ) -> tuple[Question, ...]:
        """Put a person's answer on the record; `resume` continues a run that no process runs, another continues itself.

        `words` are a text, or data for an answer in JSON. Gives what is still open. An answer that cannot be used is
        refused and changes nothing: InvalidAnswer. The first one counts; another is refused with it: NoOpenQuestion.
        """
        from chargehand.runs.answer_question import record_answer  # no run needs it

        check_arguments({"run": run, "question": question, "words": words, "by": by})
        words = words if isinstance(words, str) else to_json(words).decode()
        run = self.find_run(run)
        if not self.home.has(run):
            return await self._answer_as_order(run, question, words, by, RunOwned(f"{run} is on Temporal."))
        try:
            journal = self.home.open(run)
        except RunOwned as owned:
            return await self._answer_as_order(run, question, words, by, owned)
        with closing(journal):
            return await record_answer(run, journal, question, words)

    async def _answer_as_order(
        self, run: str, question: str, words: str, by: str, owned: RunOwned
    ) -> tuple[Question, ...]:
        """Have the owner of the run take the answer."""
        from chargehand.runs.answer_question import check_answer

        check_answer(run, self.source.state(run), question, words, is_owned=True)
        sent = await self._order("answer", run, by, question=question, text=words)
        if sent.verdict == "accepted":
            return self.questions(run)
        if sent.verdict is not None:
            raise NoOpenQuestion(sent.reason)
        if self.source.owner(run) is not None:
            message = f"{owned} It has not taken the answer yet: it will, or the next resume."
            raise RunOwned(message, command=f"See: chargehand show {run}")
        return await self.answer(run, question, words, by=by)  # it parked, or died, before it saw the answer

    def _find_note(self, run: str) -> NotedRun | None:
        """What the home knows of a run on Temporal; None for another."""
        source = self.source
        return None if isinstance(source, Home) else source.find_note(run)
