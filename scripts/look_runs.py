"""A folder -> a home with runs of every size and in every state, made with a scripted model."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from chargehand import Supervisor, Team, Worker, tool
from chargehand.testing import ScriptedModel

ROOT = Path(__file__).resolve().parents[1]
CHARGEHAND = str(Path(sys.executable).with_name("chargehand"))
Rules = list[dict[str, Any]]

CITIES = ("Oslo", "Bergen", "Trondheim", "Stavanger")
REQUEST = "Compare Oslo, Bergen, Trondheim and Stavanger as a place for a data team of six people"
ANSWER = """\
**Trondheim suits a team of six best** when hiring matters most; Stavanger wins on rent [rank].

| City | Analysts looking for work | Office, 60 m² a month | Flights to London a week |
|---|---|---|---|
| Oslo [oslo-people, oslo-rent] | 1,900 | 21,000 kr | 84 |
| Bergen [bergen-people, bergen-rent] | 450 | 14,500 kr | 19 |
| Trondheim [trondheim-people, trondheim-rent] | 720 | 12,900 kr | 12 |
| Stavanger [stavanger-people, stavanger-rent] | 310 | 11,200 kr | 16 |

What speaks for each:

- *Oslo*: the largest pool of people and direct flights [oslo-people]
- *Bergen*: lower turnover and a compact centre [bergen-people]
- *Trondheim*: two programmes in statistics at one university [trondheim-people]
- *Stavanger*: an office costs 11,200 kr a month [stavanger-rent]

> Wages are nearly the same everywhere: the largest difference is 4 % [check].

The page for the board is written [text], and each of its figures was compared with the results [proof].
"""


def task(id: str, worker: str, instruction: str, *depends_on: str) -> dict[str, Any]:
    criterion = "Each figure has a source and a year."
    return {
        "id": id,
        "worker": worker,
        "instruction": instruction,
        "success_criterion": criterion,
        "depends_on": list(depends_on),
    }


def twelve_tasks() -> dict[str, Any]:
    tasks = [
        task(f"{city.lower()}-{part}", "researcher", f"Find {what} in {city}, with year and source.")
        for city in CITIES
        for part, what in (("people", "how many analysts look for work"), ("rent", "what an office of 60 m² costs"))
    ]
    found = [each["id"] for each in tasks]
    tasks += [
        task("rank", "analyst", "Rank the four cities by people first, rent second.", *found),
        task("check", "analyst", "Check that wages do not change the order.", "rank"),
        task("text", "writer", "Write half a page for the board, with a table of the figures.", "rank", "check"),
        task("proof", "reviewer", "Compare every figure of the text with the results.", "text"),
    ]
    return {"goal": REQUEST, "tasks": tasks}


def fan(number: int) -> dict[str, Any]:
    """Figures looked up one by one, checked in tens, summed up in the end."""
    tasks = [
        task(f"figure-{n}", "researcher", f"Look up figure {n} of the register.") for n in range(number * 10 // 11)
    ]
    found = [each["id"] for each in tasks]
    checks = number - len(tasks) - 1
    tasks += [
        task(f"check-{n}", "analyst", f"Check the figures of part {n}.", *found[n::checks]) for n in range(checks)
    ]
    tasks.append(
        task("sum", "writer", "Sum the register up.", *[each["id"] for each in tasks if each["worker"] == "analyst"])
    )
    return {"goal": "Check the register of figures", "tasks": tasks}


SIZES = (1, 12, 300, 5_000)
LONG = (
    "Find how many people live in Oslo. Count only those whose address is in the municipality on the first of "
    "January, leave out students who are registered elsewhere and people in institutions, give the year with the "
    "figure, and say which register it comes from. If two registers differ, name both and say which you trust, and why."
)


def plan_of(number: int) -> dict[str, Any]:
    if number == 1:
        return {"goal": "One figure", "tasks": [task("oslo", "researcher", "\n\n".join([LONG] * 6))]}
    return twelve_tasks() if number == 12 else fan(number)


def request_of(number: int) -> str:
    if number == 1:
        return "Find how many people live in Oslo"
    return REQUEST if number == 12 else f"Check the register of {number:,} figures"


def done(output: Any, *claims: tuple[str, str]) -> dict[str, Any]:
    stated = [{"statement": words, "confidence": 90, "sources": [source]} for words, source in claims]
    return {"json": {"summary": "Done.", "output": output, "claims": stated, "findings": [], "confidence": 85}}


FIGURES = {
    "Oslo": (1900, 21_000, 84),
    "Bergen": (450, 14_500, 19),
    "Trondheim": (720, 12_900, 12),
    "Stavanger": (310, 11_200, 16),
}


def found_figures(delay_ms: int) -> Rules:
    """What the twelve tasks give; calls take from 50 to 190 % of a time."""
    given: dict[str, dict[str, Any]] = {}
    for line, (city, (people, rent, flights)) in enumerate(FIGURES.items(), 2):
        words = f"{people:,} analysts look for work in {city}."
        given[f"{city.lower()}-people"] = done({"analysts": people, "flights": flights}, (words, f"people.csv:{line}"))
        words = f"An office of 60 m² costs {rent:,} kr a month in {city}."
        given[f"{city.lower()}-rent"] = done({"office_60_m2_kr": rent}, (words, f"rents.csv:{line}"))
    given["rank"] = done("Trondheim, Oslo, Bergen, Stavanger: people first, rent second.")
    given["check"] = done("Wages do not change the order: the largest difference is 4 %, two programmes in statistics.")
    made: Rules = []
    for number, (id, reply) in enumerate(given.items()):
        delay = delay_ms * (5 + 7 * number % 15) // 10
        if file := {"people": "people.csv", "rent": "rents.csv"}.get(id.partition("-")[2]):
            made.append({"when": {"task": id, "contains": "city,year"}, "delay_ms": delay, "reply": reply})
            read = {"tool_calls": [{"name": "read_file", "arguments": {"path": file}}]}
            made.append({"when": {"task": id}, "delay_ms": delay, "reply": read})
        else:
            made.append({"when": {"task": id}, "delay_ms": delay, "reply": reply})
    return made


def write_material(folder: Path) -> list[Path]:
    """The registers that the researchers read."""
    folder.mkdir(exist_ok=True)
    people, rents = folder / "people.csv", folder / "rents.csv"
    people.write_text(
        "city,year,analysts,flights\n" + "".join(f"{c},2024,{p},{f}\n" for c, (p, _, f) in FIGURES.items())
    )
    rents.write_text("city,year,office_60_m2_kr\n" + "".join(f"{c},2024,{r}\n" for c, (_, r, _) in FIGURES.items()))
    return [people, rents]


def escalates(reason: str, message: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "escalate", "arguments": {"reason": reason, "message": message}}]}


def rules(delay_ms: int = 120) -> Rules:
    return [
        {"when": {"role": "planner"}, "delay_ms": delay_ms, "reply": {"json": twelve_tasks()}},
        *found_figures(delay_ms),
        {"when": {"role": "worker"}, "delay_ms": delay_ms, "reply": done("The figure is 717,710 (2024).")},
        {"when": {"role": "scorer"}, "reply": {"json": {"score": 90, "met": True, "reason": "It is met."}}},
        {"when": {"role": "judge"}, "reply": {"json": {"contradictions": []}}},
        {"when": {"role": "refiner"}, "reply": {"json": {"instruction": "Find the figure in another register."}}},
        {
            "when": {"role": "synthesizer"},
            "delay_ms": delay_ms,
            "reply": {"text": f"{ANSWER}\n## Notes\nConfidence: 84"},
        },
        {"reply": {"json": {"tasks": []}}},
    ]


def says(answer: str, delay_ms: int = 0) -> Rules:
    return [{"when": {"role": "synthesizer"}, "delay_ms": delay_ms, "reply": {"text": answer}}]


SHORT = says("717,710 people live in Oslo [oslo].\n\n## Notes\nConfidence: 95")
SUMMED = says("The register holds together [sum].\n\n## Notes\nConfidence: 83", 300)
PARTLY = says("What could be looked up agrees [check-1, check-2]. The rest is below.\n\n## Notes\nConfidence: 70", 300)


# One task is partial if its answer is not in the form that was asked for, several if some of them are escalated.
SCHEMA = {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]}
LOST: Rules = [
    {"when": {"task": id}, "reply": escalates("out_of_scope", f"No register has {id}.")}
    for id in ("stavanger-people", "stavanger-rent", "figure-17", "figure-80", "figure-142")
]


def office(*more: Worker) -> Team:
    named = (("analyst", "Compares"), ("writer", "Writes"), ("reviewer", "Checks"))
    researcher = Worker("researcher", "Looks figures up", tools=["read_file"])
    return Team([researcher, *(Worker(name, description) for name, description in named), *more], name="office")


class Maker:
    """Makes runs in one home; `runs` has their ids by what they show."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.home.mkdir(parents=True, exist_ok=True)
        self.material = write_material(self.home.parent / "material")
        self.runs: dict[str, str] = {}

    async def make(self, name: str, request: str, model: Rules, team: Team | None = None, **options: Any) -> None:
        supervisor = Supervisor(team or office(), model=ScriptedModel(model), home=self.home)
        report = await supervisor.run(request, material=self.material, **options)
        self.runs[name] = report.run

    async def make_list(self) -> None:
        """Enough small runs for a list that is longer than the page."""
        for number in range(40):
            city = ("Oslo", "Bergen", "Tromsø", "Bodø")[number % 4]
            request = f"How many people live in {city}, district {number + 1}?"
            await self.make("one", request, [*SHORT, *rules(1)], plan=plan_of(1))

    async def make_states(self, number: int) -> None:
        """A run with so many tasks in each state in which a run stops by itself."""
        request, plan = request_of(number), plan_of(number)
        first, delay_ms = plan["tasks"][0]["id"], 60 if number < 1_000 else 0
        whole = SHORT if number == 1 else [] if number == 12 else SUMMED
        usual = [*whole, *rules(delay_ms)]
        limits: dict[str, Any] = {"plan": plan, "max_tasks": number, "max_concurrent": 24, "tokens": 5_000_000}
        await self.make(f"complete-{number}", request, usual, **limits)
        partly = [*LOST, *(PARTLY if number > 12 else []), *usual]
        schema = SCHEMA if number == 1 else None
        await self.make(f"partial-{number}", LONG if number == 1 else request, partly, schema=schema, **limits)
        broken = {"when": {"role": "worker"}, "reply": {"error": {"status": 401, "message": "The key is not valid."}}}
        await self.make(f"failed-{number}", f"{request}, with a key that has expired", [broken, *usual], **limits)
        await self.make(f"plan-{number}", f"{request}, by a plan that I approve", usual, approve=True, **limits)
        message = "Is the rent with or without heating? The registers have both, and the order of the cities differs."
        unsure = {"when": {"task": first, "attempt": 1}, "reply": escalates("ambiguous_input", message)}
        await self.make(f"question-{number}", f"{request}, and ask me if unsure", [unsure, *usual], ask=True, **limits)
        await self.make_paused(number, f"{request}, and pause for the night", usual, limits)

    async def make_paused(self, number: int, request: str, model: Rules, limits: dict[str, Any]) -> None:
        # A pause lets calls end: a task that is to be paused needs another call after it.
        read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "people.csv"}}]}
        slow: Rules = [{"when": {"role": "worker"}, "times": 3, "delay_ms": 1_200, "reply": read}]
        model = [*(slow if number < 100 else []), *model]
        supervisor = Supervisor(office(), model=ScriptedModel(model), home=self.home)
        stopping: list[asyncio.Task[Any]] = []
        ended = 0

        def look(event: Any) -> None:
            nonlocal ended
            ended += event.kind == "task_ended"
            if not stopping and (ended > number // 6 or (number == 1 and event.kind == "attempt_started")):
                stopping.append(asyncio.get_running_loop().create_task(supervisor.pause(event.run)))

        report = await supervisor.run(request, on_event=look, material=self.material, **limits)
        await asyncio.gather(*stopping)
        self.runs[f"paused-{number}"] = report.run

    async def make_provider(self, number: int) -> None:
        """A run whose provider refuses the last task for hours; its process remembers that, and can do no other run."""
        plan = plan_of(number)
        refusal = {"status": 429, "retry_after": 7_200, "message": "The limit of today is used up."}
        limited: Rules = [{"when": {"task": plan["tasks"][-1]["id"]}, "reply": {"error": refusal}}]
        request = f"{request_of(number)}, with a small quota"
        limits: dict[str, Any] = {"plan": plan, "max_tasks": number, "max_concurrent": 24, "tokens": 5_000_000}
        await self.make(f"provider-{number}", request, [*limited, *rules(60 if number < 1_000 else 0)], **limits)

    async def make_questions(self) -> None:
        @tool(approve=True)
        def send_mail(to: str, subject: str, text: str) -> str:
            """Send a mail."""
            return f"sent to {to}"

        letter = {
            "to": "board@example.com",
            "subject": "Where to open the office",
            "text": "Dear board,\n\nTrondheim suits us best. The figures are attached.\n\nThe data team",
        }
        plan = {
            "goal": "Tell the board",
            "tasks": [
                task("draft", "writer", "Write a mail to the board."),
                task("send", "sender", "Send it.", "draft"),
            ],
        }
        sends: Rules = [
            {"when": {"worker": "sender"}, "reply": {"tool_calls": [{"name": "send_mail", "arguments": letter}]}}
        ]
        sender = Worker("sender", "Sends mails", tools=[send_mail])
        await self.make(
            "tool", "Tell the board which city suits us", [*sends, *rules()], office(sender), plan=plan, ask=True
        )
        schema = {
            "type": "object", "required": ["decision"],
            "properties": {
                "decision": {"enum": ["sign", "change", "refuse"], "title": "Decision"},
                "most_rent": {"type": "integer", "title": "Highest rent", "description": "Crowns a month."},
                "urgent": {"type": "boolean", "title": "Urgent"},
                "reason": {"type": "string", "title": "Reason"},
            },
        }  # fmt: skip
        person = Worker("director", "Decides about contracts", kind="human", output_schema=schema)
        plan = {
            "goal": "A contract",
            "tasks": [
                task("terms", "analyst", "List the terms."),
                task(
                    "decision",
                    "director",
                    "Decide whether we rent the office in Trondheim. The offer is open until Friday.",
                    "terms",
                ),
            ],
        }
        await self.make(
            "form", "Have the contract for the office decided", rules(), office(person), plan=plan, ask=True
        )

    def make_by_commands(self) -> None:
        """What the command line makes: the demo, a team of teams, a review, and a run whose process is killed."""
        environment = os.environ | {"CHARGEHAND_HOME": str(self.home)}
        work = self.home.parent

        def call(*command: str, cwd: Path = work) -> None:
            quiet = subprocess.DEVNULL
            subprocess.run(command, check=False, env=environment, cwd=cwd, stdout=quiet, stderr=quiet)

        call(CHARGEHAND, "demo")
        self.runs["demo"] = self.last()
        nested = ROOT / "examples" / "nested"
        call(CHARGEHAND, "run", "Should the town build a cycle path on Mill Road?", "--with", str(nested / "material"),
             "--team", str(nested / "office"), "--model", f"scripted:{nested / 'script.json'}")  # fmt: skip
        self.runs["nested"] = self.last()
        shop = work / "shop"
        call("git", "init", "--quiet", "--initial-branch=main", str(shop))
        with (ROOT / "examples" / "shop" / "history.fi").open("rb") as history:
            subprocess.run(["git", "fast-import", "--quiet"], cwd=shop, stdin=history, check=True)
        call("git", "checkout", "--quiet", "--force", "search", cwd=shop)
        call(CHARGEHAND, "review", ".", "--diff", "main", cwd=shop)
        self.runs["review"] = self.last()
        for number in SIZES:
            self.call_python(f"r.Maker(home).make_provider({number})")
            self.runs[f"provider-{number}"] = self.last()
        self.call_python("r.be_killed(home)")
        self.runs["interrupted"] = self.last()

    def call_python(self, call: str) -> None:
        """Run a coroutine of this module in a process of its own."""
        code = f"import asyncio, scripts.look_runs as r; home = r.Path({str(self.home)!r}); asyncio.run({call})"
        subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, stderr=subprocess.DEVNULL)

    def last(self) -> str:
        supervisor = Supervisor(office(), model=ScriptedModel([]), home=self.home)
        return supervisor.report("last").run


async def be_killed(home: Path) -> None:
    """A run that ends this process in the middle of its work."""

    def look(event: Any) -> None:
        if event.kind == "task_ended" and event.task == "trondheim-people":
            os.kill(os.getpid(), signal.SIGKILL)

    supervisor = Supervisor(office(), model=ScriptedModel(rules(200)), home=home)
    material = write_material(home.parent / "material")
    await supervisor.run(
        "Compare four cities on a machine that loses power", plan=twelve_tasks(), on_event=look, material=material
    )


LIVE: Rules = [
    {
        "when": {"task": "bergen-people", "attempt": 1},
        "delay_ms": 500,
        "reply": {"text": "I could not find", "stop": "length"},
    },
    {"when": {"task": "oslo"}, "delay_ms": 1_800_000, "reply": done("late")},
    {"when": {"worker": "analyst", "contains": "figures of part"}, "delay_ms": 1_800_000, "reply": done("late")},
    {"when": {"worker": "researcher", "contains": "Look up figure"}, "reply": done("The figure is 717,710 (2024).")},
    {"when": {"task": "trondheim-rent"}, "delay_ms": 1_800_000, "reply": done("late")},
    {"when": {"task": "stavanger-people"}, "delay_ms": 1_800_000, "reply": done("late")},
    {"when": {"task": "stavanger-rent"}, "delay_ms": 1_800_000, "reply": done("late")},
    *rules(800),
]
