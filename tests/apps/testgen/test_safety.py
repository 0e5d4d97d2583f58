"""A function that can reach files, processes or the network is found by reading, however far away that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.apps.testgen.safety import Reach
from tests.apps.testgen.rooms import reading


def danger(folder: Path, code: str, name: str = "mine.f", **more: str) -> str | None:
    files = {f"{module}.py": text for module, text in more.items()}
    found = Reach(reading(folder, {"mine.py": code, **files}).modules).danger(name)
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("import os\ndef f(): os.remove('x')", "reaches os: os.remove"),
        ("from os import remove as r\ndef f(): r('x')", "reaches os: os.remove"),
        ("def f():\n    import subprocess\n    subprocess.run('ls')", "reaches processes: subprocess.run"),
        ("import shutil\ndef f(x): return shutil.rmtree", "reaches files: shutil.rmtree"),
        ("import socket\ndef f(): return socket.socket()", "reaches the network"),
        ("def f(p): open(p, 'w')", "reaches files: open for writing"),
        ("def f(p, mode): open(p, mode)", "reaches files: open for writing"),
        ("def f(p): p.open(mode='a')", "reaches files: open for writing"),
        ("def f(p): p.write_text('x')", "reaches files: .write_text()"),
        ("def f(x): return eval(x)", "reaches code made at run time: eval"),
        ("def f(): return input()", "reaches the terminal: input"),
        ("import requests\ndef f(): return requests.get('x')", "reaches the network: requests.get"),
        ("from http.client import HTTPConnection as C\ndef f(): return C('x')", "reaches the network: http.client"),
        ("import http.server as s\ndef f(): return s.HTTPServer(('', 1), None)", "reaches the network: http.server"),
        ("import os\ndef g(): os.remove('x')\ndef f(): g()", "through g"),
        ("import os\ndef h(): os.remove('x')\ndef g(): h()\ndef f(): return [g]", "through g and h"),
    ],
)
def test_reach_is_found_with_its_way(tmp_path: Path, code: str, what: str) -> None:
    """Directly, by another name, inside of the function, or through other functions."""
    assert what in (danger(tmp_path, code) or "nothing")


def test_reach_goes_through_modules_classes_and_bases(tmp_path: Path) -> None:
    """A method reaches what its base's method reaches, and making an object what its class does then."""
    base = "import os\nclass Base:\n    def wipe(self): os.remove('x')\n"
    code = "from base import Base\nclass Shop(Base):\n    def f(self): self.wipe()\ndef g(): return Maker()\n"
    code += "class Maker:\n    def __init__(self): open('x', 'w')\n    def h(self): return 1\n"
    assert "through wipe (base.py:3)" in (danger(tmp_path, code, "mine.Shop.f", base=base) or "")
    assert "__init__" in (danger(tmp_path, code, "mine.g", base=base) or "")
    assert "open for writing" in (danger(tmp_path, code, "mine.Maker.h", base=base) or "")


@pytest.mark.parametrize(
    "code",
    [
        "import os\ndef f(a): return os.path.join(a, 'b') + os.sep",
        "import os\ndef g(): os.remove('x')\ndef f(): return 1",
        "def f(p): return open(p).read()",
        "def f(text): return text.replace('a', 'b')",
        "from urllib.parse import quote\ndef f(x): return quote(x)",
        "import http\ndef f(code): return http.HTTPStatus(code).phrase",
        "from http import HTTPStatus\ndef f(code): return HTTPStatus(code).phrase",
        "import glob\ndef f(x): return glob.escape(x)",
        "def f(n): return f(n - 1) if n else 0",
        "import math\ndef f(x): return math.sqrt(x)",
        "import sys\ndef f(x): return x if sys.version_info > (3,) else print(x, file=sys.stderr)",
        "from pathlib import Path\ndef f(): return Path(__file__).resolve().parent / 'x'",
        "def f(site, input): return site.upper() * input",
        "class Shop:\n    def exists(self): return 1\ndef f(shop: Shop): return shop.exists()",
        "import os\nHOME = os.environ\ndef f(HOME): return HOME",
    ],
)
def test_pure_functions_are_let_through(tmp_path: Path, code: str) -> None:
    """Paths as text, reading, neighbours that do more, and names of one's own are nothing to fear."""
    assert danger(tmp_path, code) is None


def test_exceptions_raised_on_purpose_are_known(tmp_path: Path) -> None:
    """Its own and those of what it uses."""
    code = "class Odd(Exception): pass\ndef g(): raise Odd\ndef f(x):\n    if x: raise ValueError('x')\n    g()\n"
    reach = Reach(reading(tmp_path, {"mine.py": code}).modules)
    assert reach.raises("mine.f") == ["ValueError", "mine.Odd"]


STORE = "class Store:\n    def save(self, n): open('x', 'w')\n    def count(self): return 1\n"


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    s = Store()\n    s.save(n)",
        "def f(n): Store().save(n)",
        "def f(s: Store): s.save(1)",
        "def f(s: 'Store'): s.save(1)",
        "def f(n):\n    with Store() as s:\n        s.save(n)",
        "def f(n): make(n).save(n)",
        "def f(stores):\n    for s in stores: s.save(1)",
        "class Shop:\n    def __init__(self): self.store = Store()\n    def f(self): self.store.save(1)",
    ],
)
def test_reach_goes_through_objects(tmp_path: Path, code: str) -> None:
    """A method is found by the class of its object; where that cannot be seen, a dangerous one of its name counts."""
    name = "mine.Shop.f" if "Shop" in code else "mine.f"
    assert "open for writing through save" in (danger(tmp_path, STORE + code, name) or "nothing")


@pytest.mark.parametrize(
    "code",
    [
        "def f(n):\n    s = Store()\n    return s.count()",
        "class Other:\n    def save(self, n): return n\ndef f(n):\n    o = Other()\n    return o.save(n)",
        "def f(text: str): return text.save()",
        "def f(n): return 'a'.save() + [1].save()",
    ],
)
def test_objects_that_are_seen_to_be_harmless_are_let_through(tmp_path: Path, code: str) -> None:
    """Another class's method of the same name is not feared where it is plain whose it is."""
    assert danger(tmp_path, STORE + code) is None


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("from datetime import date\ndef f(): return date.today()", "reaches the clock: .today()"),
        ("import datetime as d\ndef f(): return d.datetime.now()", "reaches the clock"),
        ("import arrow\ndef f(): return arrow.utcnow()", "reaches the clock: .utcnow()"),
        ("import time\ndef f(): return time.time()", "reaches the clock: time.time"),
        ("import random\ndef f(): return random.random()", "reaches chance: random.random"),
        ("from uuid import uuid4\ndef f(): return uuid4()", "reaches chance: uuid.uuid4"),
    ],
)
def test_the_day_and_chance_are_nothing_to_test(tmp_path: Path, code: str, what: str) -> None:
    """What a function gave once is no fact where it depends on them; a seeded generator is one."""
    assert what in (danger(tmp_path, code) or "nothing")
    assert danger(tmp_path, "import random\ndef f(seed): return random.Random(seed).random()") is None


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("from pathlib import Path\ndef f(): return Path('/x').exists()", "reaches the machine: .exists()"),
        ("def f(root): return (root / '.git').is_dir()", "reaches the machine: .is_dir()"),
        ("def f(p): return p.stat().st_uid", "reaches the machine: .stat()"),
        ("def f(p): return [*p.iterdir()] + [*p.rglob('*')]", "reaches the machine: .iterdir()"),
        ("from pathlib import Path\ndef f(ps): return filter(Path.is_file, ps)", "pathlib.Path.is_file"),
        ("import pathlib\ndef f(): return pathlib.Path.cwd().name", "reaches the machine: pathlib.Path.cwd"),
        ("import resource\ndef f(): return resource.getrlimit(1)", "reaches the machine: resource.getrlimit"),
        ("import platform\ndef f(): return platform.node()", "reaches the machine: platform.node"),
        ("import platform\nHOST = platform.node()\ndef f(): return HOST", "platform.node through HOST (mine.py:2)"),
        ("import config\ndef f(): return config.HOST", "platform.node through HOST (config.py:3)"),
        ("import glob\ndef f(): return glob.glob('*')", "reaches the machine: glob.glob"),
        ("from glob import iglob\ndef f(): return [*iglob('*')]", "reaches the machine: glob.iglob"),
        ("from locale import getlocale\ndef f(): return getlocale()", "reaches the machine: locale.getlocale"),
        ("import sys\ndef f(): return sys.prefix", "reaches the machine: sys.prefix"),
        ("import sys\ndef f(): sys.modules['os'].kill(-1, 9)", "reaches code made at run time: sys.modules"),
    ],
)
def test_what_the_machine_is_like_is_nothing_to_test(tmp_path: Path, code: str, what: str) -> None:
    """What is on its disk and how Python was started there, asked in the function or once for its module."""
    config = "import platform\nif True:\n    HOST = platform.node()\n"
    assert what in (danger(tmp_path, code, config=config) or "nothing")
