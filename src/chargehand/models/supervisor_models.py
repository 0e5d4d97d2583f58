"""Which model a role of the supervisor uses, resolved once per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from chargehand.models.model_size import is_small
from chargehand.values.base import Field, Value
from chargehand.values.effect import ModelCall
from chargehand.values.message import Message
from chargehand.values.role import Role

# The most words for which servers report probabilities, and the fewest tokens that a call is made with.
_MOST_WORDS = 20
_LEAST_OUTPUT = 256


class SupervisorModel(Value):
    """A resolved model with its options, its window and how much it may write.

    `makes_grammar`: its server turns a schema into a grammar, which the model cannot leave.
    """

    model: str
    options: dict[str, Any] = Field(default_factory=dict)
    window: int = 32_000
    output_cap: int = 8_192
    makes_grammar: bool = False

    @property
    def is_small(self) -> bool:
        """Whether it is a model of the small tier, which needs shorter and simpler questions."""
        return is_small(self.model)

    def make_call(
        self, role: Role, messages: Sequence[Message], schema: dict[str, Any] | None, *, keeps: bool = False
    ) -> ModelCall:
        """The call that asks it for JSON of that shape, or for plain text. `keeps`: the reply is kept in the home."""
        return ModelCall(
            role=role,
            model=self.model,
            messages=tuple(messages),
            output_schema=schema,
            options=self.options,
            output_cap=self.output_cap,
            keeps=keeps,
        )

    def make_word_call(self, role: Role, messages: Sequence[Message], *, keeps: bool = False) -> ModelCall:
        """The call that asks it for one word and for the probabilities of others, which servers of open models can
        report.

        `keeps`: the reply is the same in every run.
        """
        options = {**self.options, "logprobs": True, "top_logprobs": _MOST_WORDS}
        return ModelCall(
            role=role,
            model=self.model,
            messages=tuple(messages),
            options=options,
            output_cap=_LEAST_OUTPUT,
            keeps=keeps,
        )


# The examiner is a scorer of the large tier that looks again at doubtful findings.
RoleName = Role | Literal["examiner"]
SupervisorModels = Mapping[RoleName, SupervisorModel]
