"""The job by langgraph: each task is sent to a node, with the SQLite checkpointer; a second run continues."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from bench.peers.job import CLERK, MODEL, Incomplete, Job, headers, measure


class State(TypedDict):
    request: str
    tasks: list[dict[str, Any]]
    results: Annotated[list[str], operator.add]
    answer: str


def make_graph(model: ChatOpenAI) -> StateGraph[State]:
    async def ask(role: str, text: str, task: str = "") -> Any:
        reply = await model.ainvoke([("system", CLERK), ("user", text)], extra_headers=headers(role, task))
        return json.loads(str(reply.content))

    async def plan(state: State) -> dict[str, Any]:
        return {"tasks": (await ask("planner", state["request"]))["tasks"]}

    async def work(task: dict[str, Any]) -> dict[str, Any]:
        return {"results": [(await ask("worker", task["instruction"], task["id"]))["summary"]]}

    async def write(state: State) -> dict[str, Any]:
        return {"answer": (await ask("synthesizer", "\n".join(state["results"])))["answer"]}

    graph = StateGraph(State)
    for name, node in (("plan", plan), ("work", work), ("write", write)):
        graph.add_node(name, node)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", task) for task in state["tasks"]], ["work"])
    graph.add_edge("work", "write")
    graph.add_edge("write", END)
    return graph


async def run(job: Job) -> int:
    model = ChatOpenAI(model=MODEL, base_url=job.base, api_key="loopback")
    config: Any = {"configurable": {"thread_id": "job"}}
    async with AsyncSqliteSaver.from_conn_string(str(job.folder / "checkpoints.sqlite")) as saver:
        app = make_graph(model).compile(checkpointer=saver)
        begun = (await app.aget_state(config)).next
        start: Any = None if begun else {"request": job.request, "tasks": [], "results": [], "answer": ""}
        try:
            return len((await app.ainvoke(start, config))["results"])
        except Exception as error:
            kept = (await app.aget_state(config)).values.get("results", [])
            raise Incomplete(f"raises {type(error).__name__}", len(kept)) from error


if __name__ == "__main__":
    measure(run)
