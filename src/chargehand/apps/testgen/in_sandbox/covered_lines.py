"""Coverage data becomes JSON: for each file its statements, and the statements that ran according to each data file.

Usage: covered_lines.py JOB RESULT DATA... ; JOB is a JSON list of files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import coverage


def main(job: str, result: str, *data: str) -> None:
    found: dict[str, dict[str, list[int]]] = {}
    for path in json.loads(Path(job).read_text(encoding="utf-8")):
        lines: dict[str, list[int]] = {}
        for name in data:
            measured = coverage.Coverage(data_file=name, config_file=False)
            measured.load()
            try:
                _, statements, _, missing, _ = measured.analysis2(str(Path(path).resolve()))
            except coverage.CoverageException:
                continue
            lines["statements"] = statements
            lines[Path(name).name] = sorted(set(statements) - set(missing))
        found[path] = lines
    Path(result).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
