"""`serve`: flags become the options of a server, which answers until it is stopped."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from chargehand.cli.shared_options import Command, screen

if TYPE_CHECKING:
    from chargehand.cli.screen import Screen
    from chargehand.runs.supervisor import Supervisor
    from chargehand.server.log_lines import LogForm


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="H", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8420, show_default=True, help="0 takes a free one.")
@click.option("--token-file", metavar="FILE", help="The token in FILE instead of one made at the first start.")
@click.option("--client-token-file", metavar="FILE", help="A second, weaker token, for /v1 and /mcp only.")
@click.option("--allow-host", "allow_hosts", multiple=True, metavar="H", help="Also answer to this host name.")
@click.option("--cert", metavar="FILE", help="Answer over TLS with this certificate (PEM); needs --key.")
@click.option("--key", metavar="FILE", help="The private key of --cert.")
@click.option("--root-path", default="", metavar="P", help="The path under which a proxy shows the server.")
@click.option(
    "--max-runs", type=click.IntRange(min=1), default=8, show_default=True, help="Runs at once; others queue."
)
@click.option(
    "--notify",
    metavar="ARGV",
    help="A program to start, without a shell, when a run ends or needs a person; it gets {run, status, url} on stdin.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open a browser once the server answers.")
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of log lines."
)
@click.option(
    "--engine",
    type=click.Choice(["local", "temporal"]),
    help="Where runs are carried out: here, or by workers on Temporal. [default: as set]",
)
@click.option("--dev", is_flag=True, help="With --engine temporal: also start a development server and a worker here.")
def serve(
    host: str,
    port: int,
    token_file: str | None,
    client_token_file: str | None,
    allow_hosts: tuple[str, ...],
    cert: str | None,
    key: str | None,
    root_path: str,
    max_runs: int,
    notify: str | None,
    open_browser: bool,
    log: LogForm,
    engine: str | None,
    dev: bool,
) -> None:
    """Answer over HTTP: start, watch, answer and stop runs, from a program or a browser.

    Only this machine can reach the server, unless --host names another address. Open the address that is printed: it
    holds the token. The API is described at /api/v1/openapi.json.
    """
    from chargehand.cli.make_supervisor import make_supervisor
    from chargehand.errors import UsageError
    from chargehand.settings import NO_MODEL_TO_SERVE

    _check_extras(engine, dev=dev)
    from chargehand.server.run_server import ServeOptions, serve

    options = ServeOptions(
        host=host,
        port=port,
        token=_read_token(token_file) or _token_of_environment(),
        client_token=_read_token(client_token_file),
        allow_hosts=allow_hosts,
        cert=cert,
        key=key,
        root_path=root_path if not root_path or root_path.startswith("/") else f"/{root_path}",
        max_runs=max_runs,
        notify=_argv(notify),
        log=log,
    )
    if dev and engine != "temporal":
        raise UsageError("--dev starts a development server of Temporal: give it with --engine temporal.")
    supervisor = make_supervisor(None, {"engine": engine})
    out = screen()
    for warning in supervisor.warnings:
        out.say(f"warning: {warning}")
    if not supervisor.settings.has_model:
        out.say(f"warning: No run that needs a model can be started. {NO_MODEL_TO_SERVE}")

    def announce(url: str, session: str) -> None:
        # Printed without redaction: a shortened token could not be used.
        click.echo(f"Open {session}\nPrograms use {url} with the token.", err=True)
        if open_browser:
            click.launch(session)

    with _dev_worker(supervisor, out) if dev else nullcontext():
        serve(supervisor, options, announce)


def _check_extras(engine: str | None, *, dev: bool) -> None:
    """UsageError if something that the server needs is not installed, before anything starts."""
    from chargehand.errors import UsageError

    try:
        if engine == "temporal":
            import temporalio  # noqa: F401 # pyright: ignore[reportUnusedImport]
        import chargehand.server.run_server  # noqa: F401 # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("anyio", "starlette", "uvicorn", "temporalio"):
            raise
        extras = "serve,temporal-dev" if dev else "serve,temporal" if engine == "temporal" else "serve"
        raise UsageError(
            f"`serve` needs {error.name}, which is not installed: pip install 'chargehand[{extras}]'"
        ) from None


def _dev_worker(supervisor: Supervisor, out: Screen) -> AbstractContextManager[None]:
    from chargehand.runs.temporal_dev_worker import dev_worker

    return dev_worker(supervisor, out.say)


def _read_token(file: str | None) -> str | None:
    from chargehand.cli.read_inputs import read_bytes
    from chargehand.server.run_server import check_token

    return None if file is None else check_token(read_bytes(file, "a token").decode("utf-8", "replace"), file)


def _token_of_environment() -> str | None:
    import os

    from chargehand.server.run_server import check_token

    token = os.environ.get("CHARGEHAND_TOKEN")
    return check_token(token, "CHARGEHAND_TOKEN") if token else None


def _argv(given: str | None) -> tuple[str, ...]:
    import shlex

    from chargehand.errors import UsageError

    try:
        found = tuple(shlex.split(given or ""))
    except ValueError as error:
        raise UsageError(f"--notify cannot be read: {error}. Write a program and its arguments.") from None
    if given is not None and not found:
        raise UsageError("--notify is empty: write a program and its arguments.")
    return found
