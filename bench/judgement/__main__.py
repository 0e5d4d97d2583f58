"""make judge GGUF=FILE: the table of bench/JUDGEMENT.md, measured on one real model.

python -m bench.judgement --gguf FILE [--row answers]... [--cases 20] [--write]
python -m bench.judgement --url http://127.0.0.1:8080/v1 --name MODEL     a server that is already running

python -m bench.judgement ... --squad dev-v2.0.json --sick SICK_test.txt --seed N     20 and 20 cases of other authors

With --held-back the cases are those of bench/judgement/held_back, which nothing was developed on.
With --notes DIR what was answered is kept there: the same command continues a measurement that was stopped.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

from bench.judgement.kept import KeptReplies
from bench.judgement.public_sets import EACH, draw_pairs, draw_questions
from bench.judgement.rows import HERE, ROWS, Row, Trial
from bench.judgement.team_run import CommandLine

ROOT = HERE.parent.parent
TABLE = HERE.parent / "JUDGEMENT.md"


@contextmanager
def llama(gguf: str, python: str) -> Iterator[str]:
    command = [python, "-m", "bench.judgement.llama", gguf]
    server = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        if not address:
            sys.exit(f"The model did not start: install xllamacpp for {python}, and check {gguf}.")
        yield address
    finally:
        server.kill()
        server.wait()


def read_pairs(file: Path | None, own: list[list[str | bool]]) -> list[tuple[str, str, bool]]:
    if file is None:
        return [(str(first), str(second), bool(contradict)) for first, second, contradict in own]
    pairs = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    return [(pair["first"], pair["second"], pair["contradict"]) for pair in pairs]


def as_table(row: Row) -> Iterator[str]:
    """The row's measures, one line each."""
    costs = [
        f"{mean(s for s, _ in cost):.0f} s, {mean(t for _, t in cost):,.0f} tokens" if cost else "-"
        for cost in (row.team_cost, row.plain_cost)
    ]
    for measure, hits in row.team.items():
        plain = row.plain.get(measure)
        beside = f"{sum(plain)} of {len(plain)}" if plain else "-"
        yield f"| {row.name} | {measure} | {sum(hits)} of {len(hits)} | {beside} | {costs[0]} | {costs[1]} |"


def current_commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def write_down(lines: list[str], model: str, commit: str) -> None:
    """Put the lines of the rows that were measured in the place of those that were there."""
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    stamped = [f"{line} {model}, {commit}, {when} |" for line in lines]
    measured = {tuple(line.split("|")[1:3]) for line in stamped}
    old = TABLE.read_text(encoding="utf-8").splitlines()
    kept = [line for line in old if tuple(line.split("|")[1:3]) not in measured]
    last = max(number for number, line in enumerate(kept) if line.startswith("|"))
    TABLE.write_text("\n".join([*kept[: last + 1], *stamped, *kept[last + 1 :]]) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.judgement", description=__doc__)
    parser.add_argument("--gguf", help="a model file; a server is started for it")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has xllamacpp")
    parser.add_argument("--url", help="the base url of a server that is running, with /v1")
    parser.add_argument("--name", default="local", help="the model's name there")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this row; may be given several times")
    parser.add_argument("--cases", type=int, default=20, help="at most so many cases a row")
    parser.add_argument("--held-back", action="store_true", help="the cases that nothing was developed on")
    parser.add_argument("--pairs", type=Path, help="JSON lines with first, second, contradict")
    parser.add_argument("--squad", type=Path, help="answers to questions of SQuAD 2.0, a file such as dev-v2.0.json")
    parser.add_argument("--sick", type=Path, help="contradictions of SICK, a file such as SICK_test.txt")
    parser.add_argument("--seed", type=int, default=1, help="what draws the cases of these sets")
    parser.add_argument("--notes", type=Path, help="a folder for what was answered; with it, a stopped run continues")
    parser.add_argument("--write", action="store_true", help="put the lines into bench/JUDGEMENT.md")
    options = parser.parse_args()
    if (options.gguf is None) == (options.url is None):
        parser.error("give --gguf FILE or --url URL")
    material = HERE / "held_back" if options.held_back else HERE
    cases = json.loads((material / "cases.json").read_text(encoding="utf-8"))
    pairs = read_pairs(options.pairs, cases.get("pairs", []))
    name = Path(options.gguf).stem if options.gguf else options.name
    commit = current_commit()
    kept = KeptReplies(options.notes / "replies.jsonl" if options.notes else None)
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        public: dict[str, str] = {}
        if options.squad:
            material, public["answers"] = Path(folder), f", SQuAD 2.0, seed {options.seed}"
            cases["questions"] = draw_questions(options.squad, options.seed, material)
        if options.sick:
            pairs, public["contradictions"] = draw_pairs(options.sick, options.seed), f", SICK, seed {options.seed}"
        for row_name in options.row or public or ROWS:
            print(f"== {row_name}", file=sys.stderr)

            with llama(options.gguf, options.python) if options.gguf else nullcontext(options.url) as url:
                line = CommandLine(Path(folder), url, name)
                most = 2 * EACH if row_name in public else options.cases
                row = ROWS[row_name](Trial(line, most, cases, pairs, kept, commit, material))
            row.name += public.get(row_name, ", held back" if options.held_back else "")
            lines += as_table(row)
            if options.notes:
                options.notes.mkdir(parents=True, exist_ok=True)
                text = json.dumps(row.notes, indent=1, ensure_ascii=False)
                (options.notes / f"{row.name}.json").write_text(text, encoding="utf-8")
    print(f"\n{name} on {platform.machine()}")
    print("\n".join(lines))
    if options.write:
        write_down(lines, name, commit)


main()
