"""What `testgen` says of code that it does not run, and where it cannot run anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.testgen.rooms import project, reading
from tests.apps.testgen.test_safety import danger
from tests.cli.terminal import Shell
from tests.golden import check_wording

REACHES = {
    "a file": "def f(p): open(p, 'w')",
    "a file through others": "import os\ndef h(): os.remove('x')\ndef g(): h()\ndef f(): return [g]",
    "a process": "import subprocess\ndef f(): subprocess.run('ls')",
    "the network": "import socket\ndef f(): return socket.socket()",
    "code": "def f(x): return eval(x)",
    "the terminal": "def f(): return input()",
    "the clock": "import time\ndef f(): return time.time()",
    "chance": "import random\ndef f(): return random.random()",
}
NOTHING_TO_RUN = {
    "no function": {"mine.py": "A = 1\n"},
    "only dangerous functions": {"mine.py": "import os\ndef f(): os.remove('x')\n"},
    "functions with tests, and dangerous ones": {
        "mine.py": "import os\ndef f(): os.remove('x')\ndef g(n): return n\ndef h(n): return n\n",
        "test_mine.py": "import mine\ndef test_g(): assert mine.g(1) == mine.h(1)\n",
    },
    "only asynchronous functions": {"mine.py": "async def f(): return 1\n"},
}


def test_code_that_is_not_run(tmp_path: Path) -> None:
    """Functions that reach outside, and modules that cannot be imported."""
    messages = {f"a function that reaches {what}": danger(tmp_path, code) or "" for what, code in REACHES.items()}
    code = "def f(): return 1\n"
    files = {"good.py": code, "broken.py": "def f(:\n", "random.py": code, "bin/good.py": code, "odd-name.py": code}
    skipped = reading(tmp_path / "modules", files).skipped
    messages |= {f"the module {each.path}": each.why for each in skipped}
    check_wording("testgen_left_out", messages)


@pytest.mark.slow
def test_nothing_to_run(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Why no test was written."""
    messages: dict[str, str] = {}
    for name, files in NOTHING_TO_RUN.items():
        root = project(tmp_path / name.replace(" ", "-"), {"pyproject.toml": "", **files})
        messages[name] = shell("testgen", root).err.replace(str(root), "…")
    root = project(tmp_path / "project", {"pyproject.toml": "", "mine.py": "def f(): return 1\n", "taken": "x"})
    refused = shell("testgen", root, "--out", root / "taken" / "below").complaint
    monkeypatch.setenv("PATH", "/nowhere")
    messages["no sandbox"] = shell("testgen", root).complaint
    messages["a folder that cannot be made"] = refused.replace(str(root), "…")
    check_wording("testgen_refusals", messages)
