"""fetch_page reads public pages with bounds, and never connects to an address that is not public."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import json
import re
import socket
import ssl
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from yarl import URL

from chargehand.errors import ToolError
from chargehand.tools import BUILTIN, ToolContext, addresses, call
from chargehand.tools import html_text as readable
from chargehand.tools.web import Fetcher, fetching
from chargehand.values.effect import ToolResult
from tests.loopback import Answer, Seen, Server, serving

LIST = Path(__file__).with_name("hostile_urls.txt")
URLS = [
    json.loads('"' + line.replace('"', '\\"') + '"')
    for line in LIST.read_text(encoding="utf-8").split("\n")
    if line and not line.startswith("#")
]
# What a test's own server is called: the one host whose address is not checked.
SITE = "site.example.com"
# Of an address, before anything is sent: not a public one, or of a host that nobody knows.
REFUSED = ("not_allowed", "not_found")


async def resolve(host: str, port: int) -> list[str]:
    """A resolver as an attacker would run it; bare numbers are addresses, as for the system's own."""
    match host.partition(".")[0].partition("-"):
        case ("to", _, address):
            return [address.replace("-", ".")]
        case ("to6", _, address):
            return [address.replace("-", ":")]
        case ("both", _, _):
            return ["93.184.215.14", "127.0.0.1"]
        case ("nothing", _, _):
            return []
        case ("garbage", _, _):
            return ["not-an-address"]
        case ("site", _, _):
            return ["127.0.0.1"]
    try:
        return [socket.inet_ntoa(socket.inet_aton(host))]
    except OSError:
        raise socket.gaierror(host) from None


def fetch(url: str, fetcher: Fetcher) -> ToolResult:
    return asyncio.run(call(fetching(fetcher), {"url": url}, ToolContext()))


def fetcher_of(server: Server, **more: object) -> Fetcher:
    ports = addresses.PORTS | {server.port}
    return Fetcher(**{"resolve": resolve, "ports": ports, "exempt": frozenset({SITE}), "proxies": {}, **more})  # type: ignore[arg-type]


@contextmanager
def site(answer: Callable[[Seen], Answer]) -> Iterator[tuple[Server, Callable[..., ToolResult]]]:
    """A server, and a function that fetches a path of it."""
    with serving(answer) as server:
        yield server, lambda path="/", **more: fetch(f"http://{SITE}:{server.port}{path}", fetcher_of(server, **more))


def page(raw: bytes, kind: str = "text/html; charset=utf-8", **headers: str) -> Answer:
    return Answer(raw=raw, headers={"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}})


def test_the_list_of_hostile_urls_is_long() -> None:
    """At least 100 of them, no two the same."""
    assert len(URLS) == len(set(URLS)) >= 200


def test_every_hostile_url_is_refused_before_anything_is_sent() -> None:
    """Also where a server listens at the address they mean: it sees nothing."""
    with serving(lambda _: page(b"secret")) as server:
        for url in URLS:
            result = fetch(url.replace("PORT", str(server.port)), fetcher_of(server))
            assert result.code in REFUSED, (url, result.error)
        assert server.connections == 0


def test_every_hostile_url_is_refused_as_the_goal_of_a_redirect() -> None:
    """Each hop is checked like the first: the server sees the first request of each fetch and no second one."""
    # What is no absolute URL is a path on the same host, and what cannot stand in a header cannot be sent.
    goals = [url for url in URLS if re.match(r"https?://[^/?#]|(?!http:)[a-z+-]+:", url) and url.isascii()]
    goals = [url for url in goals if url.isprintable() and url == url.strip()]
    assert len(goals) > 120
    with serving(lambda seen: Answer(status=307, raw=b"", headers={"Location": places[int(seen.path[1:])]})) as server:
        places = [goal.replace("PORT", str(server.port)) for goal in goals]
        for number, place in enumerate(places):
            result = fetch(f"http://{SITE}:{server.port}/{number}", fetcher_of(server))
            assert result.code in (*REFUSED, "unreachable"), (place, result.error)
            assert server.count == number + 1, place


def test_the_shipped_tool_refuses_with_the_systems_own_resolver() -> None:
    """Without anything injected a loopback server is out of reach, under any spelling."""
    with serving(lambda _: page(b"secret")) as server:
        for host in ("127.0.0.1", "localhost", "2130706433", "[::1]", "0x7f.1"):
            for port in (server.port, 80):
                result = asyncio.run(call(BUILTIN["fetch_page"], {"url": f"http://{host}:{port}/"}, ToolContext()))
                assert result.code == "not_allowed"
        assert server.connections == 0


def test_a_name_that_changes_its_address_is_connected_to_as_checked() -> None:
    """The host is looked up once a hop, and what was checked is what is connected to: no second answer is asked for."""
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["192.0.2.1"]

    with site(lambda _: page(b"hello")) as (server, get):
        assert "hello" in get(resolve=rebinding).text
        assert asked == [SITE]
        # The next fetch asks anew, and what it is told now is refused.
        refused = fetch(f"http://{SITE}:{server.port}/", fetcher_of(server, resolve=rebinding, exempt=frozenset()))
        assert refused.code == "not_allowed"
        assert server.connections == 1


@pytest.mark.parametrize(
    "host",
    [
        *("router.lan", "printer.local", "vault.internal", "x.localhost", "wiki.corp", "1.0.0.127.in-addr.arpa"),
        *("a.onion", "intranet", "a$b.com", "-a.com", "a-.com", "a..com", "x.c0m-", "x.123", "x.0x7f"),
        *(f"{'a' * 64}.com", "a." * 126 + "com"),
    ],
)
def test_names_of_private_networks_are_refused_whatever_their_address(host: str) -> None:
    """Even if a resolver gives a public one: within the network it may be another."""

    async def public(host: str, port: int) -> list[str]:
        return ["93.184.215.14"]

    with pytest.raises(ToolError) as refused:
        asyncio.run(addresses.check_target(URL.build(scheme="http", host=host), public, addresses.PORTS, frozenset()))
    assert refused.value.code == "not_allowed"
    fine = addresses.check_target(URL("http://example.com/"), public, addresses.PORTS, frozenset())
    assert asyncio.run(fine).addresses == ("93.184.215.14",)


def test_the_systems_resolver_tells_all_addresses_once() -> None:
    """As text, in the order it prefers them."""
    found = asyncio.run(addresses.system_resolve("localhost", 80))
    assert {"127.0.0.1", "::1"} >= set(found) > set()
    assert len(found) == len(set(found))


def test_a_page_becomes_readable_text_with_its_title() -> None:
    """Scripts, styles and markup are gone; headings and lists can be told."""
    html = (
        b"<!DOCTYPE html><html><head><title>A &amp; B</title><style>p{}</style><script>if (a < b) evil()</script>"
        b"</head><body><!-- hidden --><h2>Head</h2><p>One <b>bold</b>\n word.</p><ul><li>x<li>y</ul>"
        b"<a href='/a>b'>link</a> 1 < 2 &eacute;</body></html>"
    )
    with site(lambda _: page(html)) as (server, get):
        result = get("/p?q=1")
        assert result.error is None
        head, title, blank, *lines = result.text.split("\n")
        assert head == f"http://{SITE}:{server.port}/p?q=1 (text/html)"
        assert (title, blank) == ("A & B", "")
        assert lines == ["## Head", "One bold word.", "- x", "- y", "link 1 < 2 é"]
        sent = server.requests[0].headers
        assert sent["host"] == f"{SITE}:{server.port}"
        assert not {"cookie", "authorization", "referer"} & sent.keys()


def test_redirects_within_the_public_are_followed_five_times() -> None:
    """The sixth is too many; relative places are places on the same host."""

    def hops(seen: Seen) -> Answer:
        number = int(seen.path[1:])
        return page(b"arrived") if number == 0 else Answer(status=302, raw=b"", headers={"Location": f"/{number - 1}"})

    with site(hops) as (_, get):
        assert "arrived" in get("/5").text
        assert get("/6").code == "unreachable"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (page(b"%PDF", "application/pdf"), "not_readable"),
        (page(b"\0\1\2", "text/plain"), "not_readable"),
        (page(b"PK", "application/zip"), "not_readable"),
        (Answer(status=404, raw=b"no"), "unreachable"),
        (Answer(status=302, raw=b""), "unreachable"),
        (page(b"x", content_encoding="br"), "not_readable"),
        (page(b"not gzip", content_encoding="gzip"), "not_readable"),
        (Answer(reset=True), "unreachable"),
    ],
)
def test_what_cannot_be_read_is_an_error(answer: Answer, code: str) -> None:
    """One line that names the page."""
    with site(lambda _: answer) as (_, get):
        result = get()
        assert result.error is not None
        assert result.code == code
        assert SITE in result.error.message
        assert "\n" not in result.error.message


def test_a_server_that_never_answers_is_left_in_time() -> None:
    """The limit is for the whole fetch."""
    with site(lambda _: Answer(silent=True)) as (_, get):
        assert get(seconds=0.2).code == "too_slow"
    with site(lambda _: Answer(raw=b"x" * 100, drip=0.05)) as (_, get):
        assert get(seconds=0.2).code == "too_slow"


@pytest.mark.parametrize("packing", ["", "gzip", "deflate"])
def test_large_pages_and_bombs_are_cut(packing: str) -> None:
    """Two megabytes are read at most, and no more is ever unpacked."""
    raw = b"x" * 50_000_000 if packing else b"x" * 2_500_000
    packed = {"": lambda: raw, "gzip": lambda: gzip.compress(raw, 1), "deflate": lambda: zlib.compress(raw)}[packing]()
    headers = {"content_encoding": packing} if packing else {}
    with site(lambda _: page(packed, "text/plain", **headers)) as (_, get):
        text = get().text
        assert "2 MB" in text
        assert len(text) < 46_000


NOT_WHOLE = "the page was not sent to its end: the rest is missing"


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 9, "one two"),
        (gzip.compress(b"one ") + gzip.compress(b"")[:12], f"one \n[{NOT_WHOLE}]"),
        (gzip.compress(b"whole")[:-1], f"whole\n[{NOT_WHOLE}]"),
        (b"", "[there is no text on this page]"),
    ],
    ids=["two members and fill", "a member cut short", "an end cut short", "nothing"],
)
def test_a_packed_page_is_whole_or_says_it_is_not(packed: bytes, said: str) -> None:
    """Every part of a gzip body is read, and one without an end is told."""
    with site(lambda _: page(packed, "text/plain", content_encoding="gzip")) as (_, get):
        assert get().text.endswith(f"\n\n{said}")


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ("blåbær".encode(), "text/plain"),
        ("blåbær".encode("latin-1"), "text/plain; charset=iso-8859-1"),
        ("blåbær".encode("latin-1"), "text/plain"),
        ("blåbær".encode("utf-16"), "text/plain"),
        ("blåbær".encode("utf-16-le"), "text/plain; charset=utf-16le"),
        ("<meta charset='windows-1252'>blåbær".encode("cp1252"), "text/html"),
        ("blåbær".encode(), "text/plain; charset=zip"),
        ("blåbær".encode(), "text/plain; charset=unicode_escape"),
        ("blåbær".encode(), "text/plain; charset=no-such-thing"),
    ],
)
def test_encodings_are_as_declared_or_found(raw: bytes, kind: str) -> None:
    """Names of codecs that are no encodings are not believed."""
    with site(lambda _: page(raw, kind)) as (_, get):
        assert get().text.endswith("blåbær")


def test_behind_a_proxy_nothing_is_fetched_unless_the_host_is_reached_directly() -> None:
    """Through a proxy the address cannot be checked; NO_PROXY lists what goes without."""
    with site(lambda _: page(b"hello")) as (server, get):
        for proxies in ({"http": "http://proxy:3128"}, {"all": "proxy:3128"}):
            assert get(proxies=proxies).code == "not_allowed"
        assert server.connections == 0
        assert "hello" in get(proxies={"http": "http://proxy:3128", "no": "example.com"}).text
        assert "hello" in get(proxies={"https": "http://proxy:3128"}).text


def test_public_addresses_are_told_from_others() -> None:
    """By IANA's registries, in IPv4 and IPv6."""
    public = ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "2606:4700::1111", "2a00:1450::1"]
    assert all(addresses.is_public(ipaddress.ip_address(each)) for each in public)
    special = [
        "::",
        "::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::",
        "2001::1",
        "fe80::1",
        "fc00::",
        "ff02::1",
    ]
    assert not any(addresses.is_public(ipaddress.ip_address(each)) for each in special)


@pytest.mark.slow
@pytest.mark.parametrize("hostile", ["<", "<a ", "<!--", "<a href='", "<script>", "<p>&#x", "</", "<a '>"])
def test_hostile_pages_take_no_longer_than_others(hostile: str) -> None:
    """Four times the page stays far from the sixteen times the work that a quadratic reader would have."""

    def cost(page: str) -> float:
        begun = time.process_time()
        readable.text(page)
        readable.by_line(page)
        return time.process_time() - begun

    cost(hostile)
    assert cost(hostile * 60_000) < 10 * max(cost(hostile * 15_000), 0.01)


def test_lines_of_html_stay_lines_of_the_source() -> None:
    """So that references to lines lead to the right place, also behind escaped newlines and long comments."""
    source = "<html>\n<!-- a\nb\n-->\n<p>one&#10;two</p>\n<script>\nx\n</script><p\nclass='y'>three\nfour</p>"
    lines = readable.by_line(source)
    assert len(lines) == source.count("\n") + 1
    assert [(at, line) for at, line in enumerate(lines, 1) if line] == [(5, "one two"), (9, "three"), (10, "four")]


def test_https_is_checked_against_the_name_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the checked address, the certificate must be for the host; a custom CA is honoured."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=test", "-addext", f"subjectAltName=DNS:{SITE}", "-days", "2"]
    command += ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with serving(lambda _: page(b"hello"), tls=context) as server:
        fetcher = fetcher_of(server, exempt=frozenset({SITE, "site.other.com"}))
        assert fetch(f"https://{SITE}:{server.port}/", fetcher).code == "unreachable"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        assert fetch(f"https://{SITE}:{server.port}/", fetcher).text.endswith("hello")
        assert fetch(f"https://site.other.com:{server.port}/", fetcher).code == "unreachable"
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "absent.pem"))
        assert fetch(f"https://{SITE}:{server.port}/", fetcher).code == "unavailable"
