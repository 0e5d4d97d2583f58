"""Token, cookie, Host, Origin and client token: the whole matrix of who is let in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chargehand.errors import UsageError
from chargehand.record.lock import OwnerLock
from chargehand.server.run_server import ServeOptions, check_token, listen, serve
from tests.server.serving import CLIENT_TOKEN, TOKEN, Client, make_supervisor

RUNS = "/api/v1/runs"


@pytest.mark.parametrize(
    ("token", "path", "status"),
    [
        (TOKEN, RUNS, 200),
        (TOKEN, "/metrics", 200),
        (TOKEN, "/", 200),
        (None, RUNS, 401),
        (None, "/metrics", 401),
        (None, "/", 401),
        (None, "/healthz", 200),
        ("wrong-" + TOKEN, RUNS, 401),
        ("", RUNS, 401),
        ("é", RUNS, 401),
        (CLIENT_TOKEN, RUNS, 403),
        (CLIENT_TOKEN, "/metrics", 403),
        (CLIENT_TOKEN, "/", 403),
        (CLIENT_TOKEN, "/v1/models", 200),
        (CLIENT_TOKEN, "/healthz", 200),
        (TOKEN, "/v1/models", 200),
    ],
)
def test_a_token_decides_what_is_answered(client: Client, token: str | None, path: str, status: int) -> None:
    """Everything but the health check needs the owner's token; the client token is for /v1 and /mcp only."""
    answer = client.send("GET", path, token=None if token is None else token.encode().decode("latin-1"))
    assert answer.status == status
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_basic_authorization_is_not_a_token(client: Client) -> None:
    """Only `Bearer` is read."""
    assert client.get(RUNS, authorization=f"Basic {TOKEN}").status == 401


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("localhost:9", 200),
        ("LOCALHOST", 200),
        ("[::1]:8420", 200),
        ("runs.example.com", 200),
        ("evil.example.com", 421),
        ("127.0.0.1.evil.com", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_only_loopback_and_allowed_names_are_answered(client: Client, host: str, status: int) -> None:
    """A name that an attacker points at this machine is refused, also for the health check."""
    assert client.get("/healthz", host=host).status == status
    assert client.get(RUNS, host=host).status == status


def test_the_address_with_a_token_gives_a_session_cookie(client: Client) -> None:
    """303, no-store, no-referrer; the cookie is a random id, HttpOnly and SameSite=Strict, named after the port."""
    first, second = (client.send("GET", f"/?token={TOKEN}", token=None) for _ in range(2))
    assert (first.status, first.headers["location"]) == (303, "/")
    assert first.headers["cache-control"] == "no-store"
    assert first.headers["referrer-policy"] == "no-referrer"
    cookie = first.headers["set-cookie"]
    assert cookie.startswith(f"chargehand-{client.port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert cookie != second.headers["set-cookie"]
    assert client.send("GET", RUNS, token=None, cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize("path", ["/", "/runs/last"])
@pytest.mark.parametrize("token", ["wrong", CLIENT_TOKEN, ""])
def test_a_wrong_token_in_the_address_gives_no_session(client: Client, token: str, path: str) -> None:
    """The client token opens no page."""
    answer = client.send("GET", f"{path}?token={token}", token=None)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/runs/last", "/runs/last"),
        ("/runs/%0d%0aset-cookie:x", "/runs/%0D%0Aset-cookie%3Ax"),
        ("/runs/..%5C%5Cevil.com", "/runs/..%5C%5Cevil.com"),
        ("//evil.com/runs/x", None),
        ("/runs//evil.com", None),
        ("/api/v1/runs", None),
        ("/v1/models", None),
    ],
)
def test_the_address_of_a_run_takes_the_token_too_and_leads_only_to_itself(
    client: Client, path: str, location: str | None
) -> None:
    """The same page without its query; other addresses take no token, and none leads to another host."""
    answer = client.send("GET", f"{path}?token={TOKEN}&next=http://evil.com", token=None)
    if location is None:
        assert (answer.status, "location" in answer.headers, "set-cookie" in answer.headers) == (401, False, False)
        return
    assert (answer.status, answer.headers["location"]) == (303, location)
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert client.send("GET", "/runs/last", token=None, cookie=cookie).status == 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://{host}", 405), ("https://{host}", 405), (None, 403), ("http://evil.com", 403), ("null", 403)],
)
def test_a_change_by_cookie_needs_our_origin(client: Client, origin: str | None, status: int) -> None:
    """A page of another site has our cookie sent along by no browser that knows SameSite; this is the second lock."""
    session = client.send("GET", f"/?token={TOKEN}", token=None).headers["set-cookie"].partition(";")[0]
    headers = {} if origin is None else {"origin": origin.format(host=f"127.0.0.1:{client.port}")}
    assert client.send("POST", "/healthz", token=None, cookie=session, **headers).status in (status, 405)
    assert client.send("DELETE", RUNS, token=None, cookie=session, **headers).status == status
    assert client.send("DELETE", RUNS, token=TOKEN).status == 405


def test_a_browser_without_a_session_gets_a_page_that_says_what_to_open(client: Client) -> None:
    """A program gets the problem as JSON; text from the request never becomes markup."""
    page = client.send("GET", "/", token=None, accept="text/html,*/*")
    assert (page.status, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "open the address that `chargehand serve` printed" in page.body.decode()
    assert client.send("GET", "/", token=None).headers["content-type"] == "application/problem+json"
    assert "&lt;b&gt;" in client.get("/%3Cb%3E", accept="text/html").body.decode()


def test_the_log_as_text_leaves_out_what_only_reads(client: Client) -> None:
    """A page makes dozens of such requests, and the address to open would scroll away; refused ones are logged."""
    before = len(client.log.getvalue())
    client.get("/")
    client.get(f"{RUNS}/none")
    client.send("DELETE", RUNS)
    # A line is written after its answer is sent, and before the next request is read.
    client.get("/healthz")
    written = [line.split(" ", 1)[1].rpartition(" ms=")[0] for line in client.log.getvalue()[before:].splitlines()]
    assert written == [
        f"request method=GET path={RUNS}/none status=404",
        f"request method=DELETE path={RUNS} status=405",
    ]


def test_tokens_and_cookies_are_not_logged(client: Client) -> None:
    """The query of a request is never part of a log line."""
    client.send("GET", f"/?token={TOKEN}", token=None)
    # A line is written after its answer is sent, and before the next request is read.
    client.get("/healthz")
    assert "status=303" in client.log.getvalue()
    assert TOKEN not in client.log.getvalue()


@pytest.mark.parametrize("token", ["short", "has a space in the middle", "ünïcödé-tökén-öf-sörts", ""])
def test_a_token_that_is_easily_guessed_or_cannot_be_sent_is_refused(token: str) -> None:
    """At least 16 printable ASCII characters."""
    with pytest.raises(UsageError, match="token"):
        check_token(token, "FILE")


def test_another_address_than_loopback_needs_a_named_token(tmp_path: Path) -> None:
    """Nobody opens a server to a network by accident."""
    with pytest.raises(UsageError, match="--token-file"):
        serve(make_supervisor(tmp_path), ServeOptions(host="0.0.0.0", port=0), lambda _url, _session: None)


def test_a_home_has_one_server(tmp_path: Path) -> None:
    """The second one says who serves it, also where its port is that of the first."""
    lock = OwnerLock(tmp_path / "server.lock", "server")
    try:
        with listen(ServeOptions(port=0)) as taken:
            for port in (0, taken.getsockname()[1]):
                with pytest.raises(UsageError, match=f"process {os.getpid()}"):
                    serve(make_supervisor(tmp_path), ServeOptions(port=port), lambda _url, _session: None)
    finally:
        lock.release()
