"""Every way a provider or the network can fail ends in one ModelError: one sentence, the right kind, never the key."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from chargehand.errors import ErrorKind, ModelError
from chargehand.models.provider_errors import retry_after
from chargehand.models.resolve import Models, Provider
from chargehand.models.transport import REPLY_LIMIT
from chargehand.values.message import user
from tests.loopback import Answer, Seen, error, events, serve
from tests.models.asking import ANTHROPIC, BOTH, KEY, OPENAI, WHO, a_call, ask, environment, fault, put

Hear = Callable[[str], None] | None
STREAMING: tuple[Hear, Hear] = (None, lambda _: None)


@pytest.mark.parametrize("on_text", STREAMING)
@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("status", "message", "kind", "transient"),
    [
        (429, "slow down", "rate_limited", True),
        (500, "oops", "overloaded", True),
        (502, "bad gateway", "overloaded", True),
        (503, "later", "overloaded", True),
        (504, "gateway", "overloaded", True),
        (529, "overloaded", "overloaded", True),
        (401, f"Incorrect API key provided: {KEY}", "auth", False),
        (403, "not yours", "auth", False),
        (400, "unknown field", "bad_request", False),
        (404, "no such model", "bad_request", False),
        (422, "unprocessable", "bad_request", False),
        (400, "This model's maximum context length is 8192 tokens", "context_too_long", False),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", "context_too_long", False),
        (413, "too large", "context_too_long", False),
        (408, "timed out", "timeout", True),
    ],
)
def test_each_status_has_its_kind(
    model: str, status: int, message: str, kind: ErrorKind, transient: bool, on_text: Hear
) -> None:
    """A status becomes a kind; what the provider said is in the message, the key is not."""
    found = fault(error(status, message), a_call(model), on_text)
    assert (found.kind, found.status, found.transient) == (kind, status, transient)
    assert message.replace(KEY, "***") in str(found)
    assert model.partition(":")[0] in str(found)


@pytest.mark.parametrize(("model", "variable"), [(OPENAI, "OPENAI_API_KEY"), (ANTHROPIC, "ANTHROPIC_API_KEY")])
def test_a_wrong_key_names_its_variable(model: str, variable: str) -> None:
    """The remedy for 401 is the variable to check."""
    assert variable in str(fault(error(401), a_call(model)))


def test_a_used_up_quota_is_not_worth_a_retry() -> None:
    """429 for want of money is rate_limited but not transient."""
    found = fault(error(429, "You exceeded your quota", code="insufficient_quota"), a_call(OPENAI))
    assert (found.kind, found.transient) == ("rate_limited", False)


def test_filtered_content_is_refused() -> None:
    """A 400 from a content filter is a refusal, not a mistake in the request."""
    assert fault(error(400, "filtered", code="content_filter"), a_call(OPENAI)).kind == "refused"


@pytest.mark.parametrize("status", [429, 503, 529])
def test_retry_after_is_read(status: int) -> None:
    """Seconds, milliseconds and dates all become seconds to wait."""
    assert fault(error(status, Retry_After="7"), a_call(OPENAI)).retry_after == 7
    assert fault(error(status, Retry_After="7", retry_after_ms="1500"), a_call(OPENAI)).retry_after == 1.5
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    waited = fault(error(status, Retry_After=later), a_call(ANTHROPIC)).retry_after
    assert waited is not None
    assert 60 < waited <= 90


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0.5", 0.5), ("soon", None), ("", None), ("-3", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_an_odd_retry_after_never_fails(value: str, seconds: float | None) -> None:
    """What cannot be read is None, what is past is now."""
    assert retry_after({"Retry-After": value}) == seconds


@pytest.mark.parametrize(
    "headers", [{"retry-after-ms": "1e12"}, {"Retry-After": "99999999"}, {"retry-after-ms": "inf"}]
)
def test_no_provider_is_waited_for_longer_than_a_day(headers: dict[str, str]) -> None:
    """A wait beyond that is a mistake or an attack; the provider is asked again then."""
    assert retry_after(headers) == 24 * 3_600


def test_a_wait_that_is_a_date_is_capped_too() -> None:
    """Counted from the provider's own clock."""
    headers = {"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT", "Date": "Wed, 01 Jan 2020 00:00:00 GMT"}
    assert retry_after(headers) == 24 * 3_600


def test_a_long_error_is_shortened() -> None:
    """A provider's message is capped."""
    assert len(str(fault(error(400, "x" * 100_000), a_call(OPENAI)))) < 600


@pytest.mark.parametrize("on_text", STREAMING)
@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize(
    ("body", "transient"),
    [
        (b"<html><body>Please log in</body></html>", True),
        (b"", True),
        (b"hello", False),
        (b"[1, 2]", False),
        (b'{"object": "list"}', False),
        (b'{"choices": [], "content": null}', False),
        (b'{"choices": "x", "content": [{"type": "text", "text": 3}]}', False),
        (b'{"choices": [{"message": {"content": 3}}], "content": 7}', False),
        (b'{"choices": [{"mess', False),
        (b"[" * 5000, False),
        (b"\xff\xfe", False),
    ],
)
def test_a_success_that_is_no_reply_is_a_contract_fault(
    model: str, body: bytes, transient: bool, on_text: Hear
) -> None:
    """Pages, nothing, other JSON and cut JSON are one clear error; pages and nothing are worth a retry."""
    found = fault(Answer(raw=body, headers={"Content-Type": "application/json"}), a_call(model), on_text)
    assert (found.kind, found.transient) == ("contract", transient)
    assert "this address" in str(found)


@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/event-stream"}])
def test_a_page_instead_of_a_stream_is_a_contract_fault(model: str, headers: dict[str, str]) -> None:
    """Whatever it says it is; it comes from something on the way, and is often gone at the next try."""
    found = fault(Answer(raw=b"<html>hi</html>", headers=headers), a_call(model), lambda _: None)
    assert (found.kind, found.transient) == ("contract", True)
    assert "<html>hi</html>" in str(found)


@pytest.mark.parametrize(("code", "kind"), [(429, "rate_limited"), (502, "overloaded"), (400, "bad_request")])
def test_an_error_under_a_success_is_an_error(code: int, kind: ErrorKind) -> None:
    """Gateways send errors with status 200; their code decides."""
    raw = json.dumps({"error": {"code": code, "message": "upstream"}}).encode()
    assert fault(Answer(raw=raw), a_call(OPENAI)).kind == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("overloaded_error", "overloaded"),
        ("rate_limit_error", "rate_limited"),
        ("authentication_error", "auth"),
        ("invalid_request_error", "bad_request"),
        ("never_heard_of", "overloaded"),
    ],
)
@pytest.mark.parametrize("model", BOTH)
def test_an_error_inside_a_stream_has_its_kind(model: str, name: str, kind: ErrorKind) -> None:
    """An error event ends the stream with the kind its name says."""

    def handler(seen: Seen) -> Answer:
        first = events(seen, Answer(text="part"))[0]
        bad = "data: " + json.dumps({"type": "error", "error": {"type": name, "message": "no"}})
        raw = f"{first}\n\n{bad}\n\n".encode()
        return Answer(raw=raw, headers={"Content-Type": "text/event-stream"})

    assert fault(handler, a_call(model), lambda _: None).kind == kind


@pytest.mark.parametrize("on_text", STREAMING)
@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("cut", [0, 1, 60])
def test_a_cut_reply_is_a_connection_fault(model: str, cut: int, on_text: Hear) -> None:
    """A reply that ends early is transient, whether streamed or not."""
    found = fault(Answer(text="hello world", cut=cut), a_call(model), on_text)
    assert (found.kind, found.transient) == ("connection", True)


@pytest.mark.parametrize("model", BOTH)
def test_a_stream_that_ends_tidily_but_early_is_cut(model: str) -> None:
    """Without the closing event there is no reply, even if the connection ended in order."""

    def handler(seen: Seen) -> Answer:
        some = events(seen, Answer(text="hello world"))[:3]
        return Answer(raw="".join(f"{e}\n\n" for e in some).encode(), headers={"Content-Type": "text/event-stream"})

    assert fault(handler, a_call(model), lambda _: None).kind == "connection"


def _fault_at(base_url: str) -> ModelError:
    models = Models({"mine": Provider(name="mine", base_url=base_url, wire="openai")}, {})
    with pytest.raises(ModelError) as caught:
        asyncio.run(put(models, a_call("mine:m")))
    return caught.value


def test_nobody_listening_names_the_address() -> None:
    """A refused connection is transient and says where and what to check."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = _fault_at(f"http://127.0.0.1:{port}/v1")
    assert (found.kind, found.transient) == ("connection", True)
    assert f"http://127.0.0.1:{port}/v1" in str(found)
    assert "this address" in str(found)


def test_an_unknown_host_names_the_address() -> None:
    """A name that does not resolve is a connection fault."""
    found = _fault_at("http://nowhere.invalid/v1")
    assert found.kind == "connection"
    assert "nowhere.invalid" in str(found)


def test_a_redirect_is_not_followed() -> None:
    """A key goes only where it was configured for: a redirect is an error that names its target."""
    found = fault(Answer(status=307, raw=b"", headers={"Location": "http://127.0.0.1:1/v1"}), a_call(OPENAI))
    assert found.kind == "bad_request"
    assert "http://127.0.0.1:1/v1" in str(found)


def test_a_reply_of_ten_megabytes_works() -> None:
    """Size alone is no fault up to the limit."""
    document = b'{"choices": [{"message": {"content": "%s"}}]}' % (b"x" * 10_000_000)
    reply, _ = ask(Answer(raw=document), a_call(OPENAI))
    assert len(reply.text) == 10_000_000


@pytest.mark.parametrize("on_text", STREAMING)
@pytest.mark.parametrize("headers", [{}, {"Content-Type": "text/event-stream"}])
def test_a_reply_over_the_limit_is_one_sentence(headers: dict[str, str], on_text: Hear) -> None:
    """Over 32 MB nothing more is read, whether the length was announced or not."""
    answer = Answer(raw=b"data: " + b"x" * (REPLY_LIMIT + 1), headers=headers)
    found = fault(answer, a_call(OPENAI), on_text)
    assert found.kind == "contract"
    assert "32 MB" in str(found)


def test_a_stream_may_be_larger_than_the_reply_it_brings() -> None:
    """40 MB of events that say little: what counts for a reply is not what a stream wraps around it."""

    def handler(seen: Seen) -> Answer:
        filler = f"data: {json.dumps({'choices': [], 'filler': 'x' * 2**20})}\n\n" * 40
        said = "".join(f"{event}\n\n" for event in events(seen, Answer(text="hi")))
        headers = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        data = (filler + said).encode()
        return Answer(raw=b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data), headers=headers)

    assert ask(handler, a_call(OPENAI))[0].text == "hi"


def test_a_large_request_works() -> None:
    """A request over a megabyte is sent without a warning."""
    _, seen = ask(Answer(text="ok"), a_call(OPENAI, user("x" * 3_000_000)))
    assert len(seen.raw) > 3_000_000


def test_text_that_is_not_unicode_is_a_bad_request() -> None:
    """A lone surrogate cannot be sent; the error says what to do."""
    found = fault(Answer(text="ok"), a_call(OPENAI, user("a\ud800b")))
    assert found.kind == "bad_request"
    assert "UTF-8" in str(found)


def test_cancelling_a_call_ends_it_at_once() -> None:
    """Cancellation is never turned into an error, and the connection is given up."""

    async def main() -> None:
        async with serve(lambda _: Answer(silent=True)) as server:
            models = Models({}, environment(server.url))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await models.client(OPENAI).complete(a_call(OPENAI), 10, WHO)
            await models.close()

    asyncio.run(main())
