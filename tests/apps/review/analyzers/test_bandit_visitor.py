"""bandit's issues in one file."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chargehand.apps.review.analyzers.bandit import SKIPPED

with warnings.catch_warnings(action="ignore"):  # bandit uses what its own library calls old
    from bandit.core import config, manager

    from chargehand.apps.review.analyzers.bandit_visitor import FileTests

CORPUS = Path(__file__).parent / "corpus"
CODE = """
import subprocess as sub
import yaml
from hashlib import md5 as hashed, sha1
class Runner:
    TOKEN = "s3cr3t-value"
    async def run(self, command="rm -rf", password='"quoted"', *more, key=b"k" * 2):
        with open("/tmp/" + command) as file, sub.Popen(command, shell=True) as process:  # nosec B602
            return [eval(line) for line in file if hashed(line) != "password"], process
def query(db, name):
    try:
        return db.execute("select * from person where name = '%s'" % name + " and id = " + str(1))
    except Exception:
        pass
    finally:
        sub.call(["ls"], shell=False)  # nosec
    match name:
        case {"password": "x"}: assert sha1(b"").hexdigest(), "select 1 from " + name
    return {"password": "word", **{"token": f"select {name} from x"}}
def other(host="0.0.0.0"):
    exec(  # nosec: exec_used
        "1"
    ), hashed(b""), yaml.load(host), requests.get(host, verify=False)
"""


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    yield
    logging.disable(logging.NOTSET)


def bandits_own(path: Path) -> list[Any]:
    run: Any = manager.BanditManager(config.BanditConfig(), "file", quiet=True, profile={"exclude": set(SKIPPED)})
    run.files_list = [str(path)]
    run.run_tests()
    return run.get_issue_list()


def facts(issues: list[Any]) -> list[dict[str, Any]]:
    return [{**vars(each), "fdata": None} for each in issues]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_it_finds_what_bandit_finds(tmp_path: Path, end: str) -> None:
    """The same issues in the same order, at the same places, silenced by the same comments."""
    path = tmp_path / "a.py"
    path.write_text(CODE, newline=end)
    found = facts(FileTests(SKIPPED).run(str(path), path.read_bytes()))
    assert {each["test_id"] for each in found} >= {"B105", "B324", "B307", "B608", "B506"}
    assert found == facts(bandits_own(path))


def test_it_finds_what_bandit_finds_in_the_corpus() -> None:
    """The same for every file that is labelled."""
    tests = FileTests(SKIPPED)
    for path in sorted(set(CORPUS.rglob("*.py")) - {CORPUS / "bugs" / "broken.py"}):
        assert facts(tests.run(str(path), path.read_bytes())) == facts(bandits_own(path)), path
