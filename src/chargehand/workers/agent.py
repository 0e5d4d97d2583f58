"""A model agent as a worker: material and task in one prompt, a tool loop with a step cap, a result, one re-ask."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property, partial
from typing import Any

from chargehand.engine.port import Engine
from chargehand.engine.run_parallel import run_parallel
from chargehand.events import Warned
from chargehand.models.model_size import is_small, is_small_open
from chargehand.values.effect import ModelCall, ToolCall, ToolResult, usage_of
from chargehand.values.lazy_regex import lazy_regex
from chargehand.values.message import Message, Reply, ToolRequest, ToolSpec, system, tool_result, user
from chargehand.values.outcome import EscalationReason, Fault, Outcome, Usage, done, escalated, failed
from chargehand.values.plain_class import plain_class, with_changes
from chargehand.values.plan import Task, Tier
from chargehand.values.recovery_policy import EvidenceRule
from chargehand.workers import Assignment, RunTerms
from chargehand.workers.check_result import APOLOGY, ECHO, asks_for_findings, is_apology, is_echo
from chargehand.workers.check_sources import Grounded, Grounds
from chargehand.workers.refuse_or_call_tool import AgentTool, WorkerTools
from chargehand.workers.worker_answer import FINDINGS_SCHEMA, Answer, Unusable, as_text, read_answer
from chargehand.workers.worker_prompt import (
    ESCALATE,
    LAST_STEP,
    LONG_CONTEXT,
    MOST_MATERIAL,
    NO_PROMPT,
    SMALL_ESCALATE,
    Shape,
    common_prompt,
    context_text,
    material_and_question,
    own_prompt,
    small_system_prompt,
    system_prompt,
    task_prompt,
    with_context,
    with_material,
    without_line_numbers,
    without_name,
    words_of_person,
)

_REASONS: tuple[EscalationReason, ...] = ("out_of_scope", "ambiguous_input", "confidence_too_low", "timeout")
# At a temperature of 0 all members of a best_of would give the same answer.
VARIED_TEMPERATURE = 0.7
# The most tokens of an answer to one plain call: a small model that repeats itself does not come to an end.
_MOST_PLAIN_OUTPUT = 1_024
# How many corrections or removals in an answer one warning lists.
_MOST_DETAILS = 10
_LONGEST_DETAIL = 200
_LONGEST_FAILURE = 300
# How many statements have their sources checked at once; more would delay the other tasks.
_MOST_ON_THE_LOOP = 500
_LONG_TEXT = 20_000
# The tool with which code reads small material for a worker, and the tool that shows that the worker may read it.
READ_MATERIAL = "read_material"
READS_MATERIAL = "read_file"
# Tools that a small model is not offered when the material is in its prompt: it would only read it again.
_READERS = frozenset({"read_file", "list_files", "search_files"})
_PATH = lazy_regex(r"[\w.-]+(?:/[\w.-]+)*[\w-]")


@plain_class(frozen=True)
class Agent:
    """One narrow worker. Models by tier are resolved; nothing here changes between assignments."""

    name: str
    description: str
    prompt: str
    # By tier; None is the worker's own.
    models: Mapping[Tier | None, str]
    tier: Tier = "medium"
    check: str | None = None
    tools: Mapping[str, AgentTool] = field(default_factory=dict[str, AgentTool])
    max_steps: int = 10
    output_schema: dict[str, Any] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    output_cap: int = 4096
    # How long it waits for a provider that is down: not long when another worker can do the task.
    patience_s: float = 60.0
    # Whether its fallback does not need the same provider.
    yields: bool = False
    # How strictly the sources of its results are checked, and the names of the material in its request.
    evidence: EvidenceRule = "normal"
    material: tuple[str, ...] = ()
    # How many characters of material go into its first prompt.
    most_material: int = MOST_MATERIAL
    # Whether a person may be asked to approve calls of tools that need approval.
    ask: bool = False
    waits_for_person: bool = False
    # Takes the place of `prompt` where the model is a small open one.
    small_prompt: str = ""

    def model_for(self, tier: Tier | None) -> str:
        return self.models[tier]

    def with_model(self, model: str) -> Agent:
        return with_changes(self, models=dict.fromkeys(self.models, model))

    def bind(self, terms: RunTerms) -> Agent:
        names = tuple(each.name for each in terms.request.material)
        return with_changes(self, material=names, evidence=terms.evidence)

    @property
    def repeatable(self) -> bool:
        return not any(tool.effect == "once" for tool in self.tools.values())

    @cached_property
    def openings(self) -> dict[tuple[Shape, bool], Message]:
        """The first message of every attempt, by shape and whether the model is small: packed and hashed once."""
        cites = bool(self.material or self.tools)
        shapes: tuple[Shape, ...] = ("plain", "typed", "findings")
        words = partial(system_prompt, self.name, self.description, self.prompt, cites=cites)
        return {(shape, small): system(words(shape=shape, small=small)) for shape in shapes for small in (False, True)}

    @cached_property
    def small_openings(self) -> dict[bool, Message]:
        """The same to a small open model that answers in text: whether it has the material in its prompt -> words."""
        prompt = self.prompt if self.small_prompt in ("", NO_PROMPT) else self.small_prompt
        cites = bool(self.material or self.tools)
        return {
            True: system(small_system_prompt(self.name, self.description, prompt)),
            False: system(system_prompt(self.name, self.description, prompt, cites=cites, small=True)),
        }

    def first_messages(
        self, shape: Shape, task: Task, inputs: Mapping[str, Outcome], shown: str, *, has_read: bool = False
    ) -> list[Message]:
        """How every attempt begins. A long context comes before the words in which workers that share it differ."""
        if not shown and len(context := context_text(task)) >= LONG_CONTEXT:
            common = system(common_prompt(shape, cites=bool(self.material or self.tools)))
            own = own_prompt(self.name, self.description, self.prompt)
            return [common, with_context(context, own, task_prompt(task, inputs, context=False))]
        is_brief = shape == "plain" and is_small_open(self.model_for(task.tier))
        asked = task_prompt(task, inputs, brief=is_brief and has_read)
        if shown and self.asks_plainly(shape, task.tier, has_read=has_read):
            return [material_and_question(shown, asked)]
        is_short = is_small(self.model_for(task.tier))
        opening = self.small_openings[has_read] if is_brief else self.openings[shape, is_short]
        return [opening, with_material(shown, asked) if shown else user(asked)]

    def asks_plainly(self, shape: Shape, tier: Tier | None, *, has_read: bool) -> bool:
        """Whether its call is one plain call: the material and the question alone, to a small open model."""
        return has_read and shape == "plain" and self.small_prompt == NO_PROMPT and is_small_open(self.model_for(tier))

    def shape(self, task: Task) -> Shape:
        """The form its result of a task has."""
        if self.output_schema is not None:
            return "typed"
        asked = (self.prompt, self.description, task.instruction, task.success_criterion)
        return "findings" if asks_for_findings(*asked) else "plain"

    @cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        return (*(tool.spec for tool in self.tools.values()), ESCALATE)

    @cached_property
    def specs_but_readers(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for spec in self.specs if spec.name not in _READERS)

    def offered_tools(self, tier: Tier | None, *, has_read: bool) -> tuple[ToolSpec, ...]:
        """The tools of a call. With `has_read`, without those that read material.

        A small open model without any other tool is offered none at all: it would call one instead of answering.
        """
        specs, model = self.specs_but_readers if has_read else self.specs, self.model_for(tier)
        if has_read and specs == (ESCALATE,) and is_small_open(model):
            return ()
        return (*specs[:-1], SMALL_ESCALATE) if is_small(model) else specs

    @cached_property
    def calls(self) -> dict[tuple[Tier | None, bool, Shape, bool, bool], ModelCall]:
        """What `call` has made, by what it was asked for."""
        return {}

    def call(
        self, tier: Tier | None, *, may_call_tools: bool, shape: Shape, varied: bool = False, has_read: bool = False
    ) -> ModelCall:
        """What every call of this agent has in common: all but the conversation. `varied` is for parallel copies.

        `has_read`: tools that read material are not offered.
        """
        asked = (tier, may_call_tools, shape, varied, has_read)
        known = self.calls.get(asked)
        if known is None:
            is_plain = self.asks_plainly(shape, tier, has_read=has_read)
            schemas = {"plain": None, "typed": self.output_schema, "findings": FINDINGS_SCHEMA}
            known = self.calls[asked] = ModelCall(
                role="worker",
                worker=self.name,
                model=self.model_for(tier),
                messages=(),
                tools=self.offered_tools(tier, has_read=has_read),
                tool_choice="auto" if may_call_tools else "none",
                output_schema=schemas[shape],
                options={"temperature": VARIED_TEMPERATURE, **self.options} if varied else self.options,
                output_cap=min(self.output_cap, _MOST_PLAIN_OUTPUT) if is_plain else self.output_cap,
                patience_s=self.patience_s,
                yields=self.yields,
            )
        return known

    async def work(self, assignment: Assignment, engine: Engine) -> Outcome:
        return await _Attempt(self, assignment, engine).run()


class _Attempt:
    """One attempt at one task: the conversation so far and what it has used."""

    def __init__(self, agent: Agent, assignment: Assignment, engine: Engine) -> None:
        self.agent = agent
        self.assignment = assignment
        self.engine = engine
        self.task = assignment.task
        self.usages = assignment.used
        self.shape: Shape = agent.shape(assignment.task)
        self.messages: list[Message] = []
        self.steps = agent.max_steps
        if self.task.budget and self.task.budget.steps:
            self.steps = min(self.steps, self.task.budget.steps)
        self.calls = 0
        self.tools = WorkerTools(agent.name, agent.tools, assignment, engine, ask=agent.ask)
        # The material in its prompt.
        self.shown = ""
        # Whether the prompt of a small model has all the material that it has to read.
        self.has_read = False
        # Whether the answer to a plain call was cut off.
        self.is_cut = False
        # Successful calls of tools, as they are on the record: arguments and result.
        self.results: list[tuple[Mapping[str, Any], ToolResult]] = []
        # Which call of a tool failed last, and why; empty when the last one did not fail.
        self.last_failure = ""

    async def run(self) -> Outcome:
        outcome = await self._converse()
        return outcome.model_copy(update={"usage": Usage.total(self.usages)})

    async def _converse(self) -> Outcome:
        self.shown = await self._read_material()
        about = (self.shape, self.task, self.assignment.inputs, self.shown)
        self.messages = self.agent.first_messages(*about, has_read=self.has_read)
        for step in range(1, self.steps + 1):
            last = step == self.steps
            if last and step > 1:
                self.messages.append(user(LAST_STEP))
            reply = await self._ask(may_call_tools=not last or step == 1)
            if isinstance(reply, Outcome):
                return reply
            if not reply.tool_calls:
                return await self._answer(reply)
            if (escalation := self._escalation(reply)) is not None:
                return escalation
            self.messages.append(reply.as_message())
            if not last and (doubt := await self._use_tools(reply.tool_calls)) is not None:
                return doubt
        used = f"{self.agent.name} used all of its {self.steps} steps without an answer."
        return self._fail("budget", f"{used}{self.last_failure}")

    async def _read_material(self) -> str:
        """The material that the task names, or all of it, where it is small: no model has to ask for that."""
        if not self.agent.material or READS_MATERIAL not in self.agent.tools:
            return ""
        text = " ".join((self.task.instruction, self.task.success_criterion, json.dumps(self.task.context)))
        named = sorted({path for path in _PATH.findall(text) if path.partition("/")[0] in self.agent.material})
        arguments = {"names": named, "most": self.agent.most_material}
        effect = ToolCall(worker=self.agent.name, tool=READ_MATERIAL, arguments=arguments, effect="read")
        result = await self.engine.perform(self.assignment.key("tool", "0.1"), effect)
        self.usages.append(Usage(seconds=result.seconds, waiting_s=result.waiting_s))
        if not result.ok:
            return ""
        self.results.append((arguments, result))
        model = self.agent.model_for(self.task.tier)
        self.has_read = bool(result.lines) and is_small(model)
        if not (self.has_read and self.shape == "plain" and is_small_open(model)):
            return result.text
        shown = without_line_numbers(result.text)
        is_plain = self.agent.asks_plainly(self.shape, self.task.tier, has_read=True)
        return without_name(shown) if is_plain and len(result.lines) == 1 else shown

    async def _ask(self, *, may_call_tools: bool = True) -> Reply | Outcome:
        """The next reply, or the outcome when there is none.

        No shape is asked for while tools may still be called: small models answer in it at once, and call none.
        """
        self.calls += 1
        offered = self.agent.tools.keys() - (_READERS if self.has_read else ())
        asked = self.agent.call(
            self.task.tier,
            may_call_tools=may_call_tools,
            shape="plain" if may_call_tools and offered else self.shape,
            varied=self.assignment.is_member,
            has_read=self.has_read,
        )
        key = self.assignment.key("model", self.calls)
        self.messages += [user(words_of_person(text)) for text in self.engine.orders.words(self.task.id, key)]
        call = asked.about(self.messages)
        result = await self.engine.perform(key, call)
        self.usages.append(usage_of(result, call.model))
        if result.reply is None:
            fault = result.error
            assert fault is not None
            return self._fail(fault.kind, fault.message)
        match result.reply.stop:
            case "refused":
                return self._fail(
                    "refused", f"{call.model} refused the task: {result.reply.text[:300] or 'no reason given'}"
                )
            case "length" if result.reply.text and self.agent.asks_plainly(
                self.shape, self.task.tier, has_read=self.has_read
            ):
                self.is_cut = True
                return result.reply
            case "length":
                what = f"call of {result.reply.tool_calls[-1].name}" if result.reply.tool_calls else "answer"
                return self._fail(
                    "contract",
                    f"The {what} was cut off at its token limit; ask for less or raise the budget.",
                    result.reply.text or None,
                )
            case _:
                return result.reply

    async def _answer(self, reply: Reply) -> Outcome:
        """The structured result. An unreadable reply, or one without a result, is sent back once with the reason."""
        first = await self._read(reply.text)
        if isinstance(first, Grounded):
            return self._make_done(first)
        self.messages += [reply.as_message(), user(_again(first, self.shape))]
        again = await self._ask(may_call_tools=False)
        text = "" if first.empty else reply.text
        if isinstance(again, Outcome):
            return (await self._plain(text) if text else None) or again
        second = await self._read(again.text)
        if isinstance(second, Grounded):
            return self._make_done(second)
        text = text if second.empty else again.text
        return (await self._plain(text) if text else None) or self._unusable(second, text)

    async def _read(self, text: str) -> Grounded | Unusable:
        """The result in a reply with its valid sources, or why it is not a result."""
        answer = read_answer(text, self.agent.output_schema, wants_findings=self.shape == "findings")
        return answer if isinstance(answer, Unusable) else await self._hold_to_evidence(answer)

    async def _hold_to_evidence(self, answer: Answer) -> Grounded | Unusable:
        rule = self.agent.evidence
        if rule == "off":
            return Grounded(answer)
        if is_echo(answer, self.task):
            return Unusable((ECHO,), empty=True)
        if is_apology(answer, self.task):
            return Unusable((APOLOGY,), empty=True)
        means = bool(self.agent.material or self.agent.tools)
        assigned = self.assignment
        grounds = Grounds(self.task, assigned.inputs, self.results, means, assigned.tasks)
        hold = partial(grounds.hold, answer)
        if answer.is_text:
            from chargehand.workers.plain_result import hold_text  # not every answer is text

            hold = partial(hold_text, answer, grounds)
        many = len(answer.claims) + len(answer.findings) > _MOST_ON_THE_LOOP or len(str(answer.output)) > _LONG_TEXT
        held = await self.engine.clock.compute(hold) if many else hold()
        if self.has_read and answer.is_text:
            held = self._doubt_if_small(held)
        if rule == "strict" and (why := grounds.doubts(held)):
            return Unusable(why, empty=True)
        return held

    def _doubt_if_small(self, held: Grounded) -> Grounded:
        """The answer with less confidence and a stated gap, if a small open model gave it from material alone."""
        model, task = self.agent.model_for(self.task.tier), self.task
        if self.shape != "plain" or not is_small_open(model):
            return held
        from chargehand.workers import stated_check as check  # few models are so small

        question, said = task.instruction.strip(), str(held.answer.output)
        if self.is_cut:
            return held.doubt(f"{model} did not come to an end: its answer is cut off.", task.id)
        given = "\n".join(message.text for message in self.messages)
        is_short = check.count_sentences(said) <= check.MOST_SENTENCES and len(question) <= check.LONGEST_QUESTION
        if is_short and (foreign := check.find_foreign(said, given)):
            return held.doubt(f"The material does not have {', '.join(foreign[:_MOST_DETAILS])}.", task.id)
        return held.doubt(f"{model} is a small model and may have misread the material.", task.id)

    def _unusable(self, answer: Unusable, text: str) -> Outcome:
        why = "; ".join(answer.problems)
        if answer.empty:
            return self._fail("criterion_not_met", f"The answer is not a result: {why}", text or None)
        return self._fail("contract", f"The answer does not have the agreed shape: {why}", text or None)

    def _make_done(self, held: Grounded) -> Outcome:
        answer = held.answer
        self._warn(f"The answer of {self.agent.name} to {self.task.id} was corrected", answer.corrected)
        self._warn(f"Sources that {self.agent.name} was not given and did not read were removed", held.false)
        outcome = done(
            self.task.id,
            self.agent.name,
            summary=answer.summary,
            output=answer.output,
            claims=answer.claims,
            findings=answer.findings,
            confidence=answer.confidence,
        )
        if held.gap is not None:
            outcome = outcome.model_copy(update={"partial": True, "gaps": (held.gap,)})
        return outcome if held.evidence is None else outcome.model_copy(update={"evidence": held.evidence})

    def _warn(self, what: str, details: Sequence[str]) -> None:
        if details:
            shown = "; ".join(detail[:_LONGEST_DETAIL] for detail in details[:_MOST_DETAILS])
            more = f"; and {len(details) - _MOST_DETAILS:,} more" if len(details) > _MOST_DETAILS else ""
            self.engine.emit(
                Warned(message=f"{what}: {shown}{more}."), task=self.task.id, attempt=self.assignment.attempt
            )

    async def _plain(self, text: str) -> Outcome | None:
        """Text without the agreed shape still counts as work, at unknown confidence, where no shape is required."""
        if self.agent.output_schema is not None:
            return None
        held = await self._hold_to_evidence(as_text(text))
        return self._make_done(held) if isinstance(held, Grounded) else self._unusable(held, text)

    def _escalation(self, reply: Reply) -> Outcome | None:
        for request in reply.tool_calls:
            if request.name == ESCALATE.name:
                arguments = request.arguments or {}
                reason = arguments.get("reason")
                return escalated(
                    self.task.id,
                    self.agent.name,
                    reason if reason in _REASONS else "ambiguous_input",
                    str(arguments.get("message") or "No reason given."),
                    arguments.get("partial"),
                )
        return None

    async def _use_tools(self, requests: tuple[ToolRequest, ...]) -> Outcome | None:
        """All calls of one step at once; their results join the conversation in the order they were asked for."""
        results: dict[int, ToolResult] = {}

        async def use(number: int, request: ToolRequest) -> None:
            results[number] = await self.tools.call(request, f"{self.calls}.{number}")

        await run_parallel(use(number, request) for number, request in enumerate(requests, 1))
        ordered = [results[number] for number in range(1, len(requests) + 1)]
        for request, result in zip(requests, ordered, strict=True):
            if result.error is not None and result.error.kind == "in_doubt":
                return self._fail("in_doubt", result.error.message)
            if result.ok:
                self.results.append((request.arguments or {}, result))
            text = result.text if result.error is None else f"Error: {result.error.message}"
            self.last_failure = "" if result.error is None else _describe_failure(request.name, result.error)
            self.messages.append(tool_result(request, text, failed=not result.ok))
        self.usages.append(Usage(seconds=max(r.seconds for r in ordered), waiting_s=max(r.waiting_s for r in ordered)))
        return None

    def _fail(self, kind: Any, message: str, output: Any = None) -> Outcome:
        return failed(self.task.id, self.agent.name, kind, message, output=output)


def _describe_failure(tool: str, error: Fault) -> str:
    return f" The last call of {tool} failed: {error.first_line[:_LONGEST_FAILURE].rstrip('.')}."


def _again(answer: Unusable, shape: Shape) -> str:
    wrong = "; ".join(answer.problems)
    form = "the result itself, in plain text" if shape == "plain" else "the one JSON object and nothing else"
    return f"Your answer could not be used: {wrong}. Answer again with {form}."
