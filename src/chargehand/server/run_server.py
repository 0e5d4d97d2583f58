"""Options -> a server that runs until it is asked to stop: its token, the lock of its home, its sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import anyio
import uvicorn

from chargehand.errors import RunOwned, UsageError
from chargehand.record import lock
from chargehand.record.lock import OwnerLock
from chargehand.record.private_files import private_file, private_folder
from chargehand.record.storage_errors import storage
from chargehand.runs.event_loop import run_in_loop
from chargehand.runs.supervisor import Supervisor
from chargehand.server.access import LOOPBACK, Access
from chargehand.server.app import Server, make_app
from chargehand.server.change_runs import continue_wanted
from chargehand.server.log_lines import LogForm, LogLines
from chargehand.server.offered_names import Offered
from chargehand.steps.run_steps import NEEDED_LATER
from chargehand.text.redaction import Redactor

SHORTEST_TOKEN = 16
LOCK = "server.lock"
# Answers under way get this long when the server stops.
GRACE_S = 1
FIRST_NEEDED = (
    "chargehand.tools.calculate",
    "chargehand.tools.files",
    "chargehand.tools.write_document",
    "chargehand.models.anthropic",
    "chargehand.models.http_model",
    "chargehand.models.openai_chat",
    "chargehand.models.openai_responses",
    "yarl",
    "chargehand.engine.local.engine",
    "chargehand.planner.draft",
    *NEEDED_LATER,
)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `serve`. `token` is a token given by the user, not one made here."""

    host: str = "127.0.0.1"
    port: int = 8420
    token: str | None = None
    client_token: str | None = None
    allow_hosts: tuple[str, ...] = ()
    cert: str | None = None
    key: str | None = None
    root_path: str = ""
    max_runs: int = 8
    notify: tuple[str, ...] = ()
    log: LogForm = "text"

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK or self.host.startswith("127.")


def serve(supervisor: Supervisor, options: ServeOptions, announce: Callable[[str, str], None]) -> None:
    """Answer requests until SIGINT or SIGTERM. `announce` gets the address, and the one that opens a session."""
    if not options.is_loopback and options.token is None:
        raise UsageError(
            f"--host {options.host} is not a loopback address: others could reach the server. Choose a token and name "
            "it with --token-file FILE or CHARGEHAND_TOKEN."
        )
    _check_certificate(options.cert, options.key)
    home = supervisor.home.path
    private_folder(home)
    # Before the port is tried: the other server probably has the same one, and another port would not help.
    _refuse_second(home)
    with contextlib.closing(listen(options)) as listening:
        port = listening.getsockname()[1]
        url = address(options, port)
        lock.set_process_url(url)
        with _only_server(home):
            token = options.token or _own_token(home / "server.token")
            server = make_server(supervisor, options, token, port)
            load_for_first_run()
            announce(url, f"{url}?token={token}")
            run_in_loop(run_server(server, options, listening))


def check_token(token: str, where: str) -> str:
    """The token without white space around it; UsageError for one that is easily guessed."""
    found = token.strip()
    if len(found) < SHORTEST_TOKEN or not found.isascii() or not found.isprintable() or " " in found:
        raise UsageError(
            f"The token in {where} cannot be used: it needs at least {SHORTEST_TOKEN} printable ASCII characters "
            "without spaces. One is made by: openssl rand -hex 32"
        )
    return found


def _check_certificate(cert: str | None, key: str | None) -> None:
    if cert is None and key is None:
        return
    if cert is None or key is None:
        raise UsageError("--cert and --key belong together: give both or neither.")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"The certificate {cert} with the key {key} cannot be used: {why}. Name two PEM files that belong together."
        ) from None


def make_server(supervisor: Supervisor, options: ServeOptions, token: str, port: int) -> Server:
    """The parts of a server that listens on a port."""
    named = {name.lower() for name in options.allow_hosts}
    hosts = LOOPBACK | named | ({options.host.lower()} if options.host not in ("0.0.0.0", "::") else set[str]())  # noqa: S104
    access = Access(
        token,
        options.client_token,
        frozenset(hosts),
        cookie=f"chargehand-{port}",
        secure=options.cert is not None,
    )
    known = [value for value in (token, options.client_token) if value]
    redactor = Redactor.from_env({**os.environ, **{f"SERVER_TOKEN_{n}": value for n, value in enumerate(known)}})
    offered = Offered(supervisor.settings, supervisor.trust)
    return Server(
        supervisor,
        access,
        redactor,
        LogLines(options.log, redactor),
        offered,
        url=address(options, port),
        max_runs=options.max_runs,
        notify=options.notify,
    )


async def run_server(server: Server, options: ServeOptions, listening: socket.socket) -> None:
    """Answer what comes in at the socket until a signal asks to stop."""
    config = uvicorn.Config(
        make_app(server),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        root_path=options.root_path,
        ssl_certfile=options.cert,
        ssl_keyfile=options.key,
        timeout_graceful_shutdown=GRACE_S,
    )
    continuing = asyncio.create_task(continue_wanted(server), name="wanted runs")
    answering = _Uvicorn(config, server.stop)
    try:
        await answering.serve([listening])
    finally:
        continuing.cancel()
        await asyncio.gather(continuing, return_exceptions=True)
        await server.stop()
        await answering.close_connections()
        server.reading.close()


def load_for_first_run() -> None:
    """Import the modules that a run needs first, so that the first caller does not wait for them.

    Clients of providers are left out: they need more memory than an idle server should use.
    """
    for name in FIRST_NEEDED:
        import_module(name)
    anyio.run(anyio.sleep, 0)  # loads the modules behind streamed responses, which load at first use


class _Uvicorn(uvicorn.Server):
    """Parks runs and ends streams of events before it waits for answers under way."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._stop_runs = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._stop_runs()
        await super().shutdown(sockets)

    async def close_connections(self) -> None:
        """Close open connections: uvicorn leaves them open when cancelled, or when answers outlast the grace time."""
        while connections := list(self.server_state.connections):
            for connection in connections:
                connection.transport.abort()
            await asyncio.sleep(0)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """As in uvicorn, but a handled signal is not raised again: the server ends with exit code 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _stop(self, number: int) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True


@contextlib.contextmanager
def _only_server(home: Path) -> Generator[None]:
    """Holds the lock of the home's server."""
    try:
        held = OwnerLock(home / LOCK, "server")
    except RunOwned:
        _refuse_second(home)
        raise
    try:
        yield
    finally:
        held.release()


def _refuse_second(home: Path) -> None:
    """UsageError if another server has the home."""
    if holder := lock.owner(home / LOCK):
        raise UsageError(f"A server for {home} runs already: {holder}. Use that one, stop it, or set CHARGEHAND_HOME.")


def listen(options: ServeOptions) -> socket.socket:
    """The bound socket of a server. Raises UsageError if binding fails."""
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(2048)
        except BaseException:
            listening.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"Cannot listen on {options.host}:{options.port}: {why}. Choose another --host or --port."
        ) from None
    listening.setblocking(False)
    return listening


def address(options: ServeOptions, port: int) -> str:
    """Where a server answers."""
    host = f"[{options.host}]" if ":" in options.host else options.host
    scheme = "https" if options.cert else "http"
    return f"{scheme}://{host}:{port}{options.root_path.rstrip('/')}/"


def _own_token(path: Path) -> str:
    """The token of a home, made at the first start and readable by its owner only."""
    with storage(path):
        try:
            handle = private_file(path)
        except FileExistsError:
            return check_token(path.read_text(encoding="utf-8", errors="replace"), str(path))
        token = secrets.token_urlsafe(32)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(token + "\n")
        return token
