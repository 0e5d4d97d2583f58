"""Code that cannot do what it says, and code beside it that can."""

from __future__ import annotations

from pathlib import Path

import pytest

from chargehand.values.outcome import Finding
from tests.apps.review.analyzers.running import analyzed

HEAD = """def price(item, /, amount=1, *, tax):
    return item * amount * tax


async def send(text):
    return text


async def lines():
    yield 1


def any_number(*parts, **named):
    return parts, named


@cached
def kept(one):
    return one


"""
WRONG = {
    "price(1)": "wrong-signature",
    "price(tax=1)": "wrong-signature",
    "price(1, 2, 3, tax=1)": "wrong-signature",
    "price(1, tax=1, colour=2)": "wrong-signature",
    "send('a')": "no-effect",
    "name = 'a '\nname.strip()": "no-effect",
    "for each in many:\n    if each:\n        many.remove(each)": "likely-bug",
    "for key, value in many.items():\n    del many[key]": "likely-bug",
    "def say(name):\n    raise ValueError('no {name} here')": "format-mismatch",
    "def say(name):\n    log.warning('no {name} here')": "format-mismatch",
    "class Box:\n    def put(self, item):\n        pass\n\n    def fill(self):\n        self.put()": "wrong-signature",
    "class Basket:\n    async def put(self):\n        pass\n\n    def fill(self):\n        self.put()": "no-effect",
}
RIGHT = (
    "price(1, tax=1)",
    "price(1, 2, tax=1)",
    "price(*many)",
    "price(**many)",
    "any_number(1, 2, name=3)",
    "kept(1, 2)",
    "lines()",
    "async def all():\n    await send('a')",
    "task = send('a')",
    "def inner(price):\n    price(1)",
    "price = 1\nprice(1)",
    "name = name.strip()",
    "for each in many:\n    if each:\n        many.remove(each)\n        break",
    "for each in list(many):\n    many.remove(each)",
    "for each in many:\n    many.append(each)",
    "def say(name):\n    raise ValueError(f'no {name} here')",
    "def say(name):\n    log.warning('no {name} here', name=name)",
    "def say(name):\n    return 'no {name} here'",
    "class Box:\n    def put(self, it):\n        pass\n\n    def fill(self):\n        self.put = 1\n        self.put()",
)


@pytest.mark.parametrize("code", WRONG)
def test_a_mistake_that_the_file_shows_is_reported_once(tmp_path: Path, code: str) -> None:
    """With its category, on the line of the call or of the change."""
    (finding,) = analyzed("mistakes", tmp_path, {"a.py": f"{HEAD}{code}\n"}).findings
    assert finding.category == WRONG[code]
    assert finding.line is not None
    assert finding.line > HEAD.count("\n")


@pytest.mark.parametrize("code", RIGHT)
def test_what_may_be_meant_so_is_not(tmp_path: Path, code: str) -> None:
    """Other arguments, names that are bound again, coroutines that are kept, loops that end."""
    assert analyzed("mistakes", tmp_path, {"a.py": f"{HEAD}{code}\n"}).findings == ()


def test_a_name_that_a_module_of_the_project_lacks_is_reported(tmp_path: Path) -> None:
    """From the root, from src and from the package itself; what does not fit is reported across files, too."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "stock.py").write_text(
        "def count(kind):\n    return 1\n\n\nasync def order(kind):\n    pass\n"
    )
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "tools.py").write_text("SIZE = 1\n")
    code = (
        "from shop.stock import count, lost\nfrom .stock import order, missing\nfrom tools import SIZE, WIDTH\n"
        "from . import stock\n\n\ndef main():\n    count()\n    order(1)\n    return count(SIZE), stock\n"
    )
    found = of_project(tmp_path, "shop/main.py", code)
    assert [(finding.line, finding.category) for finding in found] == [
        (1, "undefined-name"),
        (2, "undefined-name"),
        (3, "undefined-name"),
        (8, "wrong-signature"),
        (9, "no-effect"),
    ]


@pytest.mark.parametrize(
    "module",
    [
        "from elsewhere import *\n",
        "def __getattr__(name):\n    return name\n",
        "globals()['lost'] = 1\n",
        "try:\n    from fast import lost\nexcept ImportError:\n    lost = None\n",
        "def make():\n    global lost\n    lost = 1\n",
    ],
)
def test_of_a_module_that_may_have_more_names_nothing_is_said(tmp_path: Path, module: str) -> None:
    """Names that come from elsewhere, or are made while it runs."""
    (tmp_path / "stock.py").write_text(module)
    assert of_project(tmp_path, "main.py", "from stock import lost\n\nlost()\n") == ()


def test_an_import_that_may_fail_and_modules_of_others_are_left_alone(tmp_path: Path) -> None:
    """What is tried, the standard library, and names that lead to no file."""
    (tmp_path / "json.py").write_text("")
    (tmp_path / "stock.py").write_text("")
    code = "try:\n    from stock import lost\nexcept ImportError:\n    pass\n"
    code += "from json import dumps\nfrom numpy import array\n"
    assert of_project(tmp_path, "main.py", code) == ()


def of_project(root: Path, path: str, code: str) -> tuple[Finding, ...]:
    """What is said of a file that is new in a change."""
    return analyzed("project-names", root, {path: code}, changed={path: ((1, code.count("\n")),)}).findings
