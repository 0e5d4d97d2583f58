"""Every exception chargehand raises, by who has to react.

    ChargehandError
    ├── UsageError            the caller: a wrong argument, file or setting           exit 2
    │   ├── InvalidPlan       a plan with problems (all of them, `problems`)
    │   ├── InvalidTeam       a team with problems (all of them, `problems`)
    │   ├── MissingKey        a model without its key
    │   ├── RunNotFound       no such run in this home
    │   ├── RunOwned          another process runs this run
    │   ├── NoOpenQuestion    an answer to a question that is closed or was never asked
    │   ├── InvalidAnswer     an answer that cannot be used (all that is wrong, `problems`)
    │   └── JournalTooNew     written by a newer chargehand
    ├── StorageError          the disk: full, read-only                               exit 2
    │   ├── RecordDamaged     a run's record is not what was written
    │   ├── StoreUnreachable  a blob store does not answer, or refuses
    │   ├── OtherBlobStore    a worker has another blob store than the run, or another key
    │   └── RecordGone        a run's record was removed under it (`report`: what it came to)
    ├── IncompleteRun         `report.unwrap()` of a run that is not complete (`report`)  exit of the run
    ├── PlanningFailed        the planner gave no valid plan                          exit 1
    ├── ModelError            the provider: one failed call, with kind and remedy     becomes a value
    ├── ToolError             a tool: the message is for the worker                   becomes a value
    ├── AnalyzerFailed        an analyzer: missing, crashed, past its limits          becomes a value
    └── OwnershipLost         this process lost its run to another                    exit 1

Expected outcomes of work are values (`outcome.py`), never exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from collections.abc import Sequence

ErrorKind = Literal[
    "rate_limited",
    "overloaded",
    "connection",
    "timeout",
    "deadline",
    "budget",
    "auth",
    "bad_request",
    "context_too_long",
    "refused",
    "contract",
    "criterion_not_met",
    "tool",
    "in_doubt",
    "cancelled",
    "analyzer",
    "internal",
]

# The limits of a run that can be raised.
LimitName = Literal["tokens", "usd", "deadline"]

# Why a tool gave no result.
ToolErrorCode = Literal[
    "unknown_tool",  # the worker has no such tool
    "wrong_arguments",  # they are not what the tool takes
    "not_approved",  # a person rejected the call, or nobody may be asked
    "not_allowed",  # outside of the material, not on the public internet, not only reading
    "not_found",
    "not_readable",  # damaged, binary, or in a form that is not understood
    "too_large",  # a file, an answer or a document over its limit
    "too_slow",
    "unavailable",  # what the tool needs is not there: material, a key, a library, a folder
    "unreachable",  # a server does not answer, or answers with an error
    "failed",  # any other reason, such as an exception of the tool's own
]


def lacked_limit(kind: str, message: str) -> LimitName | None:
    """The limit that has to be raised before another try can succeed; None for an error of no limit of the run."""
    if kind == "budget":
        return "usd" if " USD " in message else "tokens"
    return "deadline" if kind == "deadline" else None


class ChargehandError(Exception):
    """Something went wrong in chargehand."""

    exit_code = 1

    def __init__(self, message: str = "", *, command: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])
        # What only the command line adds to the message: the command to type. Callers in Python have methods instead.
        self.command = command

    @property
    def with_command(self) -> str:
        """The message as the command line prints it."""
        return f"{self} {self.command}" if self.command else str(self)


class UsageError(ChargehandError):
    """A wrong argument, file or setting."""

    exit_code = 2


class InvalidPlan(UsageError):
    """The plan has problems."""

    def __init__(self, message: str, problems: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class InvalidTeam(UsageError):
    """The team has problems."""

    def __init__(self, message: str, problems: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class MissingKey(UsageError):
    """The model needs a key that is not set."""


class RunNotFound(UsageError):
    """There is no such run in this home."""


class RunOwned(UsageError):
    """Another process is running this run."""

    @classmethod
    def by(cls, owner: str, run: str) -> RunOwned:
        remedy = "Wait for it to end, or cancel it, then try again."
        return cls(f"Run {run} is being run by {owner}. {remedy}", command=f"`chargehand cancel {run}` cancels it.")


class NoOpenQuestion(UsageError):
    """There is no such open question in this run."""


class InvalidAnswer(UsageError):
    """The answer cannot be used."""

    def __init__(self, message: str, problems: Sequence[object] = (), *, command: str = "") -> None:
        super().__init__(message, command=command)
        self.problems = tuple(problems)


class JournalTooNew(UsageError):
    """The record was written by a newer chargehand; upgrade to read it."""


class StorageError(ChargehandError):
    """The record could not be written or read."""

    exit_code = 2


class RecordDamaged(StorageError):
    """The record of a run is damaged; restore it from a copy, or start the run again."""


class StoreUnreachable(StorageError):
    """The blob store does not answer."""


class OtherBlobStore(StorageError):
    """The worker has another blob store than the run, or another key."""


class RecordGone(StorageError):
    """The record of a run was removed while it ran."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        # The run's Report, which is on no record now; from an app, what it made of it.
        self.report = report


class PlanningFailed(ChargehandError):
    """The planner gave no valid plan."""

    def __init__(self, message: str, problems: Sequence[object] = (), kind: ErrorKind = "contract") -> None:
        super().__init__(message)
        self.problems = tuple(problems)
        self.kind: ErrorKind = kind
        # A wrong key is for the caller to correct, as a missing one is.
        self.exit_code = 2 if kind == "auth" else 1


class IncompleteRun(ChargehandError):
    """The run is not complete."""

    def __init__(self, message: str, report: Any, exit_code: int) -> None:
        super().__init__(message)
        # The Report, with what there is. Its type is not imported: errors are the lowest layer.
        self.report = report
        self.exit_code = exit_code


class OwnershipLost(ChargehandError):
    """This run was taken over by another process; nothing more was written."""


class ModelError(ChargehandError):
    """A model call failed."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        transient: bool | None = None,
        unsent: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.retry_after = retry_after
        self.status = status
        # No byte of the request can have arrived.
        self.unsent = unsent
        # Worth sending the same bytes again: 429, 5xx, connection, cut stream.
        self.transient = kind in ("rate_limited", "overloaded", "connection") if transient is None else transient


class ToolError(ChargehandError):
    """A tool failed; the worker gets the message."""

    def __init__(self, message: str = "", code: ToolErrorCode = "failed") -> None:
        super().__init__(message)
        # An unknown code must not cost the worker the message.
        self.code: ToolErrorCode = code if code in get_args(ToolErrorCode) else "failed"


class AnalyzerFailed(ChargehandError):
    """An analyzer could not do its work."""

    kind: ErrorKind = "analyzer"
