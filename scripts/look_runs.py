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
    tasks += [
        task(f"check-{n}", "analyst", f"Check the figures of part {n}.", *found[n::30][:10])
        for n in range(number - len(tasks) - 1)
    ]
    tasks.append(
        task("sum", "writer", "Sum the register up.", *[each["id"] for each in tasks if each["worker"] == "analyst"])
    )
    return {"goal": "Check the register of figures", "tasks": tasks}


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


def office(*more: Worker) -> Team:
    named = (("analyst", "Compares"), ("writer", "Writes"), ("reviewer", "Checks"))
    researcher = Worker("researcher", "Looks figures up", tools=["read_file"])
    return Team([researcher, *(Worker(name, description) for name, description in named), *more], name="office")


class Maker:
    """Makes runs in one home; `runs` has their ids by what they show."""

    def __init__(self, home: Path) -> None:
        self.home = home.resolve()
        self.home.parent.mkdir(parents=True, exist_ok=True)
        self.material = write_material(self.home.parent / "material")
        self.runs: dict[str, str] = {}

    async def make(self, name: str, request: str, model: Rules, team: Team | None = None, **options: Any) -> None:
        supervisor = Supervisor(team or office(), model=ScriptedModel(model), home=self.home)
        report = await supervisor.run(request, material=self.material, **options)
        self.runs[name] = report.run

    async def make_ends(self) -> None:
        one = {"goal": "One figure", "tasks": [task("oslo", "researcher", "Find how many people live in Oslo.")]}
        short: Rules = [
            {
                "when": {"role": "synthesizer"},
                "reply": {"text": "717,710 people live in Oslo [oslo].\n\n## Notes\nConfidence: 95"},
            },
        ]
        for number in range(40):
            request = (
                f"How many people live in {('Oslo', 'Bergen', 'Tromsø', 'Bodø')[number % 4]}, district {number + 1}?"
            )
            await self.make("one", request, [*short, *rules(1)], plan=one)
        await self.make("complete", REQUEST, rules(), tokens=200_000)
        broken: Rules = [
            {"when": {"role": "worker"}, "reply": {"error": {"status": 401, "message": "The key is not valid."}}}
        ]
        await self.make("failed", "Compare four cities with a key that has expired", [*broken, *rules()])

    async def make_sizes(self) -> None:
        some: Rules = [
            {
                "when": {"role": "worker", "contains": f"figure {n} of"},
                "reply": escalates("out_of_scope", f"No figure {n}."),
            }
            for n in (17, 80, 142)
        ]
        words = "The register holds together: what could be looked up agrees [check-1, check-2]. The rest is below."
        summed: Rules = [
            {
                "when": {"role": "synthesizer"},
                "delay_ms": 300,
                "reply": {"text": f"{words}\n\n## Notes\nConfidence: 83"},
            }
        ]
        for number, delay_ms in ((300, 60), (5_000, 0)):
            await self.make(
                str(number), f"Check the register of {number:,} figures", [*some, *summed, *rules(delay_ms)],
                plan=fan(number), max_tasks=number, max_concurrent=24, tokens=5_000_000,
            )  # fmt: skip

    async def make_questions(self) -> None:
        await self.make("plan", REQUEST, rules(), approve=True, tokens=500_000)

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
        message = "Is the rent with or without heating? The registers have both, and the order of the cities differs."
        unsure: Rules = [
            {"when": {"task": "bergen-rent", "attempt": 1}, "reply": escalates("ambiguous_input", message)}
        ]
        await self.make("question", "Compare rents of four cities", [*unsure, *rules()], ask=True)
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

    async def make_stops(self) -> None:
        supervisor = Supervisor(office(), model=ScriptedModel(rules(600)), home=self.home)
        stopping: list[asyncio.Task[Any]] = []

        def look(event: Any) -> None:
            if event.kind == "task_ended" and not stopping:
                stopping.append(asyncio.get_running_loop().create_task(supervisor.pause(event.run)))

        report = await supervisor.run(
            "Compare four cities, and pause for the night",
            plan=twelve_tasks(),
            on_event=look,
            max_concurrent=3,
            material=self.material,
        )
        await asyncio.gather(*stopping)
        self.runs["paused"] = report.run
        # The last one here: its process remembers that the provider refuses calls.
        limited: Rules = [
            {
                "when": {"task": "rank"},
                "reply": {"error": {"status": 429, "retry_after": 7_200, "message": "The limit of today is used up."}},
            },
        ]
        await self.make("provider", "Compare four cities with a small quota", [*limited, *rules()])

    def make_by_commands(self) -> None:
        """What the command line makes: the demo, a team of teams, a review, and a run whose process is killed."""
        environment = os.environ | {"CHARGEHAND_HOME": str(self.home)}
        work = self.home.parent

        def call(*command: str, cwd: Path = work) -> None:
            quiet = subprocess.DEVNULL
            subprocess.run(command, check=False, env=environment, cwd=cwd, stdout=quiet, stderr=quiet)

        call(CHARGEHAND, "demo")
        self.runs["partial"] = self.last()
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
        code = f"import asyncio, scripts.look_runs as r; asyncio.run(r.be_killed(r.Path({str(self.home)!r})))"
        subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, stderr=subprocess.DEVNULL)
        self.runs["interrupted"] = self.last()

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
    {"when": {"task": "trondheim-rent"}, "delay_ms": 600_000, "reply": done("late")},
    {"when": {"task": "stavanger-people"}, "delay_ms": 600_000, "reply": done("late")},
    {"when": {"task": "stavanger-rent"}, "delay_ms": 600_000, "reply": done("late")},
    *rules(800),
]
