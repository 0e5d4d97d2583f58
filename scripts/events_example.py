"""One line for each event of a run: the example in docs/reference/events.md."""

from typing import assert_never

from chargehand import Event, Supervisor, Team, Worker
from chargehand import events as e
from chargehand.testing import ScriptedModel


def describe(body: e.EventBody) -> str:
    match body:
        case e.RunStarted(epoch=number, resumed=resumed):
            return f"session {number} {'resumes' if resumed else 'begins'}"
        case e.PlanDrafted(round=number, problems=problems):
            return f"draft {number} has {len(problems)} problems"
        case e.PlanRejected(problems=problems):
            return f"sent back with {len(problems)} problems"
        case e.PlanApproved(strategy=strategy):
            return f"a {strategy} plan"
        case e.Extended(tasks=tasks):
            return f"{len(tasks)} tasks are added"
        case e.TaskReady(worker=worker) | e.AttemptStarted(worker=worker):
            return f"for {worker}"
        case e.AttemptEnded(status=status, error=error):
            return status if error is None else f"{status}: {error['message']}"
        case e.TaskEnded(outcome=outcome):
            return f"{outcome['status']}: {outcome['summary']}"
        case e.ModelCalled(role=role, model=model):
            return f"{role} asks {model}"
        case e.ToolCalled(tool=tool, arguments=arguments):
            return f"{tool} {arguments}"
        case e.ToolRefused(tool=tool, reason=reason):
            return f"{tool}: {reason}"
        case e.ModelReplied(key=key) | e.ToolReturned(key=key) | e.Reused(key=key):
            return f"result of {key}"
        case e.BudgetReserved(tokens=tokens) | e.BudgetSettled(tokens=tokens):
            return f"{tokens} tokens"
        case e.Progressed(text=text):
            return text
        case e.Decided(decision=decision, reason=reason):
            return f"{decision}: {reason}"
        case e.QuestionAsked(question=question):
            return question["prompt"]
        case e.QuestionAnswered(answer=answer):
            return str(answer)
        case e.Control(order=order, verdict=verdict):
            return f"{order} is {verdict}"
        case e.SynthesisStarted(mode=mode):
            return mode
        case e.DraftDiscarded(reason=reason):
            return reason
        case e.ContradictionFound(contradiction=found):
            return found["subject"]
        case e.Critiqued(verdict=verdict):
            return str(verdict)
        case e.GapFound(gap=gap):
            return gap["reason"]
        case e.BreakerChanged(name=name, state=state):
            return f"{name} is {state}"
        case e.Warned(message=message):
            return message
        case e.RunEnded(status=status):
            return status
        case e.Unknown() | e.Unreadable():  # a newer version wrote it
            return "?"
        case _:
            assert_never(body)


seen: list[str] = []


def show(event: Event) -> None:
    seen.append(f"{event.kind}: {describe(event.body)}")


task: dict[str, object] = {
    "id": "t1",
    "worker": "clerk",
    "instruction": "Find the capital.",
    "success_criterion": "A name.",
    "depends_on": [],
}
model = ScriptedModel([{"reply": {"json": {"summary": "Found.", "output": "Oslo"}}}])
supervisor = Supervisor(Team([Worker("clerk", "Looks cities up")]), model=model)
supervisor.run_sync("Which?", plan={"goal": "The capital", "tasks": [task]}, on_event=show)
assert (seen[0], seen[-1]) == ("run_started: session 1 begins", "run_ended: complete")
assert "task_ended: done: Found." in seen
