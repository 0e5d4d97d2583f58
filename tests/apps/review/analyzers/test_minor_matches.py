"""Matches of a rule that somebody would act on, and matches of the same rule that only inform."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.apps.review.analyzers.running import analyzed

# Analyzer and category -> code that is worth stopping for.
ACTED_ON = {
    "def f(items=[]):\n    items.append(1)\n    return items\n": ("ruff-bugs", "mutable-default"),
    "def f(*, table={}):\n    table['a'] = 1\n": ("ruff-bugs", "mutable-default"),
    "class A:\n    def __init__(self, items=[]):\n        self.items = items\n\n    def put(self):\n"
    "        self.items.append(1)\n": ("ruff-bugs", "mutable-default"),
    "async def f(x):\n    try:\n        await x()\n    except:\n        x.note()\n": ("ruff-bugs", "swallowed-error"),
    "def f(row):\n    try:\n        row.save()\n    except:\n        pass\n": ("ruff-bugs", "swallowed-error"),
    "def f(user):\n    try:\n        return user.role\n    except:\n        return True\n": (
        "ruff-bugs",
        "swallowed-error",
    ),
    "def f(a):\n    a\n": ("ruff-bugs", "no-effect"),
    "def f(a):\n    return a.lstrip('data:')\n": ("ruff-bugs", "likely-bug"),
    "def f(a):\n    file = open(a, 'w')\n    file.write('a')\n": ("ruff-bugs", "resource-leak"),
    "def f(a):\n    return a\n\n\ndef f(b):\n    return b\n": ("ruff-bugs", "redefinition"),
    "import os\n\n\ndef f(name):\n    os.system(f'rm {name}')\n": ("ruff-security", "command-injection"),
    "import os\n\n\ndef f(name):\n    path = '/a/' + name\n    command = 'rm %s' % path\n    os.system(command)\n": (
        "ruff-security",
        "command-injection",
    ),
    "def f(db, name):\n    db.execute(f\"SELECT * FROM t WHERE n = '{name}'\")\n": ("ruff-security", "sql-injection"),
    "def f(db, name):\n    db.execute('SELECT * FROM t WHERE n LIKE \\'%%%s%%\\'' % name)\n": (
        "ruff-security",
        "sql-injection",
    ),
    "def f(db, name):\n    db.execute('SELECT * FROM t WHERE n = {}'.format(name))\n": (
        "ruff-security",
        "sql-injection",
    ),
    "import pickle\n\n\ndef f(request):\n    return pickle.loads(request.body)\n": (
        "ruff-security",
        "unsafe-deserialization",
    ),
    "import hashlib\n\n\ndef f(password):\n    return hashlib.md5(password).hexdigest()\n": (
        "ruff-security",
        "weak-hash",
    ),
    "import random\nimport string\n\n\ndef f():\n    token = random.choice(string.ascii_letters)\n    return token\n": (
        "ruff-security",
        "weak-random",
    ),
    "def f(text):\n    return eval(text)\n": ("ruff-security", "code-injection"),
}
ONLY_TRUE = {
    "def f(items=[]):\n    return len(items)\n": ("ruff-bugs", "mutable-default"),
    "def f(items=[]):\n    items = list(items)\n    items.append(1)\n": ("ruff-bugs", "mutable-default"),
    "def f(window=[]):\n    if window:\n        window[0] = 1\n": ("ruff-bugs", "mutable-default"),
    "def f(x):\n    try:\n        x()\n    except:\n        x.note()\n": ("ruff-bugs", "swallowed-error"),
    "def f(a):\n    a.items\n": ("ruff-bugs", "no-effect"),
    "def f(a):\n    return a.strip('```')\n": ("ruff-bugs", "likely-bug"),
    "def f(a):\n    file = open(a)\n    return file.read()\n": ("ruff-bugs", "resource-leak"),
    "def f(a):\n    a, b = a, 0\n    return a, b\n": ("ruff-bugs", "no-effect"),
    "@app.get('/a')\ndef f(a):\n    return a\n\n\n@app.get('/b')\ndef f(b):\n    return b\n": (
        "ruff-bugs",
        "redefinition",
    ),
    "import os\n\nTOOL = os.environ['TOOL']\n\n\ndef f():\n    os.system('%s run' % TOOL)\n": (
        "ruff-security",
        "command-injection",
    ),
    "def f(db, table):\n    db.execute(f'SELECT * FROM {table} WHERE n = ?', (1,))\n": (
        "ruff-security",
        "sql-injection",
    ),
    "def f(db, number: int):\n    db.execute(f'SELECT * FROM t WHERE n = {number}')\n": (
        "ruff-security",
        "sql-injection",
    ),
    "def f(db, number):\n    db.execute('SELECT * FROM t WHERE n = %d' % number)\n": ("ruff-security", "sql-injection"),
    "import pickle\n\n\ndef f(file):\n    return pickle.load(file)\n": ("ruff-security", "unsafe-deserialization"),
    "import hashlib\n\n\ndef f(name):\n    return hashlib.md5(name).hexdigest()\n": ("ruff-security", "weak-hash"),
    "import random\n\n\ndef f(api_keys):\n    api_key = random.choice(api_keys)\n    return api_key\n": (
        "ruff-security",
        "weak-random",
    ),
    "IS_ON = eval(TEXT)\n": ("ruff-security", "code-injection"),
}
# Code whose input comes from a caller that is not known, or from a person; and the same with an input that is known.
UNKNOWN = {
    "import subprocess\n\n\ndef run(command):\n    subprocess.run(command, shell=True, check=True)\n": "warning",
    "import subprocess\n\n\ndef run(*, job):\n    command = ' '.join(job.words)\n"
    "    subprocess.run(command, shell=True, check=True)\n": "warning",
    "import os\nimport sys\n\n\ndef main():\n    os.system('ls ' + sys.argv[1])\n": "warning",
    "import os\nimport sys\n\nos.system('ls ' + sys.argv[1])\n": "warning",
    "import os\n\n\ndef main():\n    name = input()\n    os.system(f'ls {name}')\n": "warning",
    "import pickle\n\n\ndef load(data):\n    return pickle.loads(data)\n": "warning",
    "import pickle\n\n\ndef load(row):\n    return _load(row.state)\n\n\ndef _load(data):\n"
    "    return pickle.loads(data)\n": "warning",
    "import pickle\n\n\nclass A:\n    def load(self):\n        return self._load(self.row)\n\n"
    "    def _load(self, data):\n        return pickle.loads(data)\n": "info",
    "import pickle\n\n\nclass A:\n    def load(self):\n        return pickle.loads(self.row)\n": "info",
    "import subprocess\n\n\ndef run(command):\n    subprocess.run(command, shell=True)\n\n\n"
    "def build():\n    run('make')\n    run(command='make test')\n": "info",
    "import subprocess\n\n\ndef run(command):\n    subprocess.run(command, shell=True)\n\n\n"
    "def build(name):\n    run('make')\n    run(name)\n": "warning",
    "import subprocess\n\n\ndef run(config):\n    subprocess.run(config.command, shell=True)\n": "info",
}


@pytest.mark.parametrize("code", UNKNOWN)
def test_an_unknown_input_of_a_shell_or_a_pickle_is_a_warning(tmp_path: Path, code: str) -> None:
    """In the folders of developers it is information, as all of security is there."""
    category = "unsafe-deserialization" if "pickle" in code else "command-injection"
    for analyzer in ("ruff-security", "bandit"):
        assert severities(tmp_path, code, analyzer, category) == {UNKNOWN[code]}
        assert severities(tmp_path, code, analyzer, category, path="scripts/a.py") == {"info"}


@pytest.mark.parametrize("code", ACTED_ON)
def test_what_somebody_would_act_on_is_more_than_information(tmp_path: Path, code: str) -> None:
    """A value that changes, an error or a cancellation that is lost, data from outside."""
    assert severities(tmp_path, code, *ACTED_ON[code]).isdisjoint({"info"})


@pytest.mark.parametrize("code", ONLY_TRUE)
def test_what_is_only_true_is_information(tmp_path: Path, code: str) -> None:
    """The same rules where nothing goes wrong."""
    assert severities(tmp_path, code, *ONLY_TRUE[code]) == {"info"}


def test_bandit_and_ruff_agree_on_it(tmp_path: Path) -> None:
    """Otherwise one place would be listed for one of them."""
    code = "import os\n\n\ndef f(name):\n    os.system(f'rm {name}')\n"
    assert severities(tmp_path, code, "bandit", "command-injection") == {"critical"}
    assert severities(tmp_path, code, "bandit", "command-injection", path="scripts/a.py") == {"info"}
    assert severities(tmp_path, code, "ruff-security", "command-injection", path="scripts/a.py") == {"info"}


def severities(folder: Path, code: str, analyzer: str, category: str, path: str = "a.py") -> set[str]:
    found = {each.severity for each in analyzed(analyzer, folder, {path: code}).findings if each.category == category}
    assert found, f"{category} is not found"
    return {str(each) for each in found}
