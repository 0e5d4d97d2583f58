"""The command line: arguments become one call of `runs` or `apps`, its result becomes text and an exit code.

Commands are loaded when they are named, so that `chargehand --help` loads none of them.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from chargehand import __version__
from chargehand.errors import ChargehandError

__all__ = ["COMMANDS", "cli", "main"]

# name -> (module of this folder, one line of help); the module has the command under that name
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Watch a whole run on a built-in script: no key, no network."),
    "run": ("run", "Answer a request with a team: plan, run the tasks, write one answer."),
    "plan": ("plan", "Make the plan for a request and run nothing."),
    "check": ("check", "Find everything wrong with a plan file or a team folder."),
    "review": ("review", "Review code: a folder, what changed since a revision, or a patch."),
    "testgen": ("testgen", "Write tests for functions that have none, run in a sandbox first."),
    "runs": ("runs", "List the runs in this home, or prune them."),
    "show": ("show", "Show the result of a run, or how far it is."),
    "resume": ("resume", "Continue a run that stopped; nothing recorded is repeated."),
    "rerun": ("resume", "Run the same request again, reusing what has not changed."),
    "fork": ("resume", "Try another way from a task on, as a new run that takes over the rest."),
    "cancel": ("runs", "Stop a run, also one of another process; it can be resumed."),
    "pause": ("steer", "Let a run begin nothing new until it is resumed."),
    "steer": ("steer", "Correct, restart or stop a task of a run, also of a run of another process."),
    "answer": ("answer", "Answer a question that a run asks a person; then resume the run."),
    "diff": ("diff", "Compare two runs: plans, tasks, cost, time, and answers side by side."),
    "trace": ("trace", "Export the record of a run as JSON, JSON lines or a page."),
    "worker": ("temporal_worker", "Carry out steps of runs on Temporal, on this machine."),
    "serve": ("serve", "Answer over HTTP: start, watch and read runs in a browser or a program."),
    "mcp": ("mcp", "Offer teams to other programs as MCP tools, on standard input and output."),
    "eval": ("eval", "Measure how well teams and models do on labelled cases."),
    "models": ("models", "Show the model of each role, its price and whether its key is set."),
    "teams": ("teams", "List the teams that ship and those in this folder, or make a new one."),
    "doctor": ("doctor", "Check whether chargehand can run here."),
    "trust": ("trust", "Let the files in a folder set endpoints, keys and tool code."),
    "schema": ("schemas", "Print the JSON schema of a value."),
    "completion": ("completion", "Print the completion script of a shell."),
}
USAGE = 2
INTERRUPTED = 130
SHORT_HELP = """\
chargehand answers a request with a team of LLM agents. It
plans, runs the tasks in parallel, writes one answer, and
records every step.

  chargehand demo
      watch a whole run: no key, no network
  chargehand review --diff main
      review what changed: no key
  chargehand run "Compare Oslo and Bergen" --with notes/
      answer a request: needs a model

`chargehand --help` lists all commands."""


class Commands(click.Group):
    """The commands of the table, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return getattr(import_module(f"chargehand.cli.{COMMANDS[cmd_name][0]}"), cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1, cutoff=0.5)
            hint = f" Did you mean `chargehand {near[0]}`?" if near else " `chargehand --help` lists the commands."
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="Exit codes: 0 complete, 1 failed or cancelled, 2 usage or settings, 3 partial, 4 waiting or "
    "paused, 130 interrupted, 143 terminated.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every event, and tracebacks of errors in chargehand.")
@click.option("-q", "--quiet", is_flag=True, help="Show nothing but the answer and errors.")
@click.version_option(__version__, "--version", message="chargehand %(version)s")
@click.pass_context
def cli(ctx: click.Context, verbose: bool, quiet: bool) -> None:
    """Supervisor-worker teams of LLM agents: a plan as data, run as dataflow, every step recorded.

    Start with: chargehand demo
    """
    ctx.obj = {"verbose": verbose, "quiet": quiet}
    if ctx.invoked_subcommand is None:
        click.echo(SHORT_HELP)
        ctx.exit(USAGE)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; an error is one line on stderr, a traceback only with -v."""
    # Imported modules and most values of a large run live to the end, so the garbage collector runs less often.
    gc.set_threshold(50_000, 20, 20)
    given = list(sys.argv[1:] if args is None else args)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = _code(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of stdout is gone: print nothing, and make later flushes harmless.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    if args is None:
        _end_process(code)
    sys.exit(code)


def _end_process(code: int) -> NoReturn:
    """End as Python does, but without freeing all modules and values, which takes 5 % of a small run."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] -- waits for threads
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    sys.stderr.flush()
    os._exit(code)


def _code(args: list[str]) -> int:
    if (wrong := next((arg for arg in args if not _is_text(arg)), None)) is not None:
        _complain(f"The argument {wrong!r} is not UTF-8 text: write it in UTF-8, or pass it on stdin with `-`.")
        return 2
    try:
        done: Any = cli.main(args, prog_name="chargehand", standalone_mode=False)
    except click.ClickException as error:
        _complain(_usage(error))
        return error.exit_code
    except click.Abort:
        _complain("Stopped.")
        return INTERRUPTED
    except KeyboardInterrupt:
        _complain("Interrupted before anything started.")
        return INTERRUPTED
    except ChargehandError as error:
        _complain(error.with_command)
        return error.exit_code
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 -- reported to the user; the record has what happened
        return _report_unexpected(error, args)
    return done if isinstance(done, int) else 0


def _is_text(arg: str) -> bool:
    """False for bytes that could not be decoded, because they cannot be recorded either."""
    try:
        arg.encode()
    except UnicodeEncodeError:
        return False
    return True


def _usage(error: click.ClickException) -> str:
    message = _unknown_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is None or "`chargehand" in message:
        return message
    names = {each.name for each in ctx.command.params}
    if message.startswith("Got unexpected extra argument"):
        if "request" in names:
            message += ". Write a request of several words in quotes"
        elif "plan_file" in names:
            message += ". --plan FILE gives a plan"
    elif isinstance(error, click.MissingParameter) and error.param is not None and error.param.metavar == "RUN":
        message = f"{message.rstrip('.')}: the id of a run, or `last`"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        message = _number_words(message, error.param)
    return f"{message}{'' if message.endswith(('.', '?', '!')) else '.'} See `{ctx.command_path} --help`."


def _number_words(message: str, param: click.Parameter) -> str:
    """The message without click's names of types, and with the unit of the number."""
    unit = " of seconds" if param.metavar == "S" else ""
    for kind, words in (("float", "number"), ("integer", "whole number")):
        message = message.replace(f"a valid {kind} range", f"a valid {kind}").replace(
            f"a valid {kind}", f"a {words}{unit}"
        )
    return message


def _unknown_option(error: click.NoSuchOption) -> str:
    """An option that is spelled almost like it, else the commands that have it."""
    from difflib import get_close_matches

    name = error.option_name
    # Without dashes, in which all options are alike.
    near = get_close_matches(name.strip("-"), [each.strip("-") for each in error.possibilities or ()], n=1)
    if near:
        return f"There is no option {name}. Did you mean --{near[0]}?"
    ctx = error.ctx or click.Context(cli)
    elsewhere = [
        each
        for each in COMMANDS
        if (command := cli.get_command(ctx, each)) and any(name in param.opts for param in command.params)
    ]
    where = f" {name} is an option of: {', '.join(elsewhere)}." if elsewhere else ""
    return f"There is no option {name} here.{where}"


def _report_unexpected(error: Exception, args: list[str]) -> int:
    if {"-v", "--verbose"}.intersection(args):
        import traceback

        _complain("".join(traceback.format_exception(error)).rstrip())
        return 1
    from chargehand.record.home import default_path

    said = " ".join(str(error).split())[:300]
    _complain(
        f"An error in chargehand itself: {type(error).__name__}{': ' if said else ''}{said}. "
        f"What was done is recorded in {default_path(os.environ)} (`chargehand runs`). -v shows the traceback."
    )
    return 1


def _complain(text: str) -> None:
    from chargehand.cli.screen import Screen

    Screen.of_process(verbose=False, quiet=False).complain(text)
