"""Which runs a caller may use and what they may cost: the owner may use all, a client its own within a budget.

The client token is for programs that somebody else wrote. They may start runs, and watch and stop those that they
started. A run of a client has a mark in its folder. The mark survives restarts and is pruned with the run.
"""

from __future__ import annotations

import re
from typing import Protocol

from chargehand.record.home import Home
from chargehand.record.private_files import private_folder
from chargehand.record.storage_errors import storage
from chargehand.server.access import Caller
from chargehand.server.refusals import Refusal
from chargehand.server.shared_state import Server
from chargehand.settings import Settings

_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_MARK = "client"


class Spending(Protocol):
    """What a caller asks to spend; None is the default."""

    @property
    def tokens(self) -> int | None: ...
    @property
    def usd(self) -> float | None: ...
    @property
    def deadline(self) -> float | None: ...


def mark_run(home: Home, run: str, caller: Caller) -> None:
    """Record that a run belongs to a client. Called in a thread, before the run begins."""
    if caller == "client":
        folder = home.path / "runs" / run
        private_folder(folder)
        with storage(folder):
            (folder / _MARK).touch(mode=0o600)


def may_use(home: Home, run: str, caller: Caller) -> bool:
    return caller == "owner" or (home.path / "runs" / run / _MARK).is_file()


async def find_run_of(server: Server, caller: Caller, name: str) -> str:
    """The id of a run that this caller may use. A client must give the whole id; `last` is refused."""
    if caller == "owner":
        return await server.reading.run(server.source.find, name)
    if not _RUN_ID.fullmatch(name) or not await server.reading.run(may_use, server.home, name, caller):
        # The message is the same whether the run exists or not, so a client cannot guess ids.
        raise Refusal(404, f"No run {name[:80]!r} was started with the client token: give the whole id of one.")
    return name


def check_spending(settings: Settings, caller: Caller, asked: Spending) -> None:
    """Refuse a client that asks for more than the default limits of a run."""
    if caller == "owner":
        return
    most = {"tokens": settings.budget.tokens, "usd": settings.budget.usd, "deadline": settings.deadline_s}
    given = {"tokens": asked.tokens, "usd": asked.usd, "deadline": asked.deadline}
    over = [
        f"{name} is {value:,}, at most {limit:,}"
        for name, value in given.items()
        if value is not None and (limit := most[name]) is not None and value > limit
    ]
    if over:
        raise Refusal(403, f"The client token may not spend that much on a run: {'; '.join(over)}. Ask for less.")


def refuse_client(caller: Caller, what: str) -> None:
    """Refuse a client what only the owner of the home may do: by page, terminal or the server's token."""
    if caller == "client":
        raise Refusal(403, f"The client token may not {what}: use the page, the terminal or the token of the server.")
