"""Connections: reused, through proxies, with a custom CA, one pool for all."""

from __future__ import annotations

import asyncio
import base64
import gzip
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chargehand.errors import ModelError, UsageError
from chargehand.models import Attribution
from chargehand.models.provider_errors import Endpoint
from chargehand.models.resolve import Models, Provider
from chargehand.models.transport import REPLY_LIMIT
from chargehand.values.message import Reply, ToolSpec
from tests.loopback import Answer, Server, ok, serve
from tests.models.asking import ALL, ANTHROPIC, KEY, OPENAI, WHO, a_call, ask, environment, fault, providers, put
from tests.pace import PATIENCE_S


def test_connections_are_reused() -> None:
    """Twenty calls one after the other, by both wire formats, use one connection."""

    async def main() -> Server:
        async with serve(ok) as server:
            models = Models({}, environment(server.url))
            for _ in range(10):
                for model in (OPENAI, ANTHROPIC):
                    await models.client(model).complete(a_call(model), 10, WHO)
            await models.close()
            return server

    server = asyncio.run(main())
    assert (len(server.requests), server.connections) == (20, 1)


def test_a_closed_client_opens_again() -> None:
    """Closing a client ends its connections; the next call makes a new one."""

    async def main() -> int:
        async with serve(ok) as server:
            client = Models({}, environment(server.url)).client(OPENAI)
            for _ in range(2):
                await client.complete(a_call(OPENAI), 10, WHO)
                await client.close()
            return server.connections

    assert asyncio.run(main()) == 2


def test_a_server_that_closes_after_each_reply_answers_every_call() -> None:
    """As llama.cpp does after a stream: the call that met the closed connection is sent again, and none after it."""

    async def main() -> tuple[list[str], int]:
        async with closing_after_each_reply() as (url, opened):
            models = Models({}, environment(url))
            said = [(await models.client(OPENAI).complete(a_call(OPENAI), 10, WHO)).text for _ in range(5)]
            await models.close()
            return said, len(opened)

    # The first connection is used twice.
    assert asyncio.run(main()) == (["hi"] * 5, 5)


def test_a_server_that_breaks_off_its_first_reply_is_not_asked_again_in_secret() -> None:
    """Only a connection that had served before may have been closed in between."""

    async def main() -> int:
        async with closing_after_each_reply(first=False) as (url, opened):
            models = Models({}, environment(url))
            with pytest.raises(ModelError):
                await models.client(OPENAI).complete(a_call(OPENAI), 10, WHO)
            await models.close()
            return len(opened)

    assert asyncio.run(main()) == 1


@asynccontextmanager
async def closing_after_each_reply(*, first: bool = True) -> AsyncIterator[tuple[str, list[int]]]:
    """Its address, and a list that grows with each connection. Each serves one reply, or with `first` off none."""
    opened: list[int] = []
    body = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    reply = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply += b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened.append(1)
        if first:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)
        while (received := await reader.read(2**16)) and b"POST" not in received:
            pass
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", opened


@pytest.mark.parametrize("size", [10, REPLY_LIMIT + 1])
def test_a_compressed_reply_is_measured_unpacked(size: int) -> None:
    """Compression is undone, and cannot smuggle more than the limit."""
    document = b'{"choices": [{"message": {"content": "%s"}}]}' % (b"x" * size)
    answer = Answer(
        raw=gzip.compress(document), headers={"Content-Type": "application/json", "Content-Encoding": "gzip"}
    )

    if size > REPLY_LIMIT:
        assert "32 MB" in str(fault(answer, a_call(OPENAI)))
    else:
        assert ask(answer, a_call(OPENAI))[0].text == "x" * size


def test_a_failed_call_leaves_the_pool_usable() -> None:
    """An error answer and a refused one do not spoil later calls."""
    answers = iter([Answer(status=503, raw=b"{}"), Answer(text="x", cut=1), Answer(text="fine")])

    async def main() -> str:
        async with serve(lambda _: next(answers)) as server:
            models = Models({}, environment(server.url))
            for _ in range(2):
                with pytest.raises(ModelError):
                    await models.client(OPENAI).complete(a_call(OPENAI), 10, WHO)
            return (await put(models, a_call(OPENAI))).text

    assert asyncio.run(main()) == "fine"


def test_the_pool_is_no_limit() -> None:
    """Two hundred calls are all in flight at once."""
    seen = 0
    waiting = 200

    async def main() -> None:
        nonlocal seen
        all_in = asyncio.Event()

        def handler(_: object) -> Answer:
            nonlocal seen
            seen += 1
            if seen == waiting:
                all_in.set()
            return Answer(silent=True)

        async with serve(handler) as server, asyncio.TaskGroup() as group:
            models = Models({}, environment(server.url))
            client = models.client(OPENAI)
            calls = [group.create_task(client.complete(a_call(OPENAI), 10, WHO)) for _ in range(waiting)]
            async with asyncio.timeout(PATIENCE_S):
                await all_in.wait()
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await models.close()

    asyncio.run(main())
    assert seen == waiting


def test_models_serve_one_loop_after_another() -> None:
    """After close, the same Models work in a new event loop."""

    async def once(models: Models) -> str:
        return (await put(models, a_call(OPENAI))).text

    async def with_server() -> tuple[str, str]:
        async with serve(ok) as server:
            models = Models({}, environment(server.url))
            first = await once(models)
            return first, await asyncio.to_thread(asyncio.run, once(models))

    assert asyncio.run(with_server()) == ("ok", "ok")


def test_odd_attribution_becomes_harmless_headers() -> None:
    """Line breaks and other scripts cannot break out of a header."""

    async def main() -> dict[str, str]:
        async with serve(ok) as server:
            models = Models({}, environment(server.url))
            who = Attribution(run="r\r\nX-Evil: 1", task=None, attempt=None, role="wörker", idempotency_key="k" * 999)
            await models.client(OPENAI).complete(a_call(OPENAI), 10, who)
            await models.close()
            return server.requests[0].headers

    headers = asyncio.run(main())
    assert headers["x-chargehand-run"] == "r??X-Evil: 1"
    assert headers["x-chargehand-role"] == "w?rker"
    assert "x-evil" not in headers
    assert len(headers["idempotency-key"]) == 255
    assert not {"x-chargehand-task", "x-chargehand-attempt"} & headers.keys()


class Proxy:
    """A proxy that sends everything to one port and keeps the heads of what it was asked."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.heads: list[str] = []
        self.port = 0
        self.refuse = False

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        if self.refuse:
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()
            return
        onward, back = await asyncio.open_connection("127.0.0.1", self.target)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            back.write(head)
        await asyncio.gather(_pump(reader, back), _pump(onward, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def proxying(target: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        # The pumps end when both sides have closed.
        await asyncio.gather(*(t for t in asyncio.all_tasks() if t is not asyncio.current_task()))


def _through_proxy(base: str, variables: dict[str, str], tls: ssl.SSLContext | None = None) -> tuple[str, list[str]]:
    """The reply's text and the heads the proxy saw; PORT stands for the proxy's port, HERE for the server's address."""

    async def main() -> tuple[str, list[str]]:
        async with serve(ok, tls=tls) as server, proxying(server.port) as proxy:
            env = {name: value.replace("PORT", str(proxy.port)) for name, value in variables.items()}
            provider = Provider(name="mine", base_url=base.replace("HERE", server.url), wire="openai", key_env="MY_KEY")
            reply = await put(Models({"mine": provider}, {"MY_KEY": KEY, **env}), a_call("mine:m"))
            return reply.text, proxy.heads

    return asyncio.run(main())


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_plain_call_goes_through_the_proxy(variable: str) -> None:
    """The host need not resolve here: the proxy is asked for the whole address."""
    text, heads = _through_proxy("http://provider.test/v1", {variable: "http://127.0.0.1:PORT"})
    assert text == "ok"
    assert [head.split("\r\n")[0] for head in heads] == ["POST http://provider.test/v1/chat/completions HTTP/1.1"]


def test_proxy_credentials_are_sent_to_the_proxy() -> None:
    """A user and password in the proxy's address become its authorization."""
    _, heads = _through_proxy("http://provider.test/v1", {"HTTP_PROXY": "me:p%40ss@127.0.0.1:PORT"})
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:p@ss').decode()}" in heads[0]


@pytest.mark.parametrize("listed", ["127.0.0.1", "*", "other.test, 127.0.0.1"])
def test_no_proxy_is_honoured(listed: str) -> None:
    """A host in NO_PROXY is called directly."""
    text, heads = _through_proxy("HERE/v1", {"HTTP_PROXY": "http://127.0.0.1:PORT", "NO_PROXY": listed})
    assert (text, heads) == ("ok", [])


def test_no_proxy_covers_subdomains_only() -> None:
    """A listed domain covers the hosts below it, not every name that ends alike."""
    variables = {"HTTP_PROXY": "http://127.0.0.1:PORT", "NO_PROXY": "vider.test,.example"}
    assert len(_through_proxy("http://provider.test/v1", variables)[1]) == 1


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and provider.test, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    names = "subjectAltName=IP:127.0.0.1,DNS:provider.test"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=provider.test", "-addext", names]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def _tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("model", ALL)
def test_every_wire_works_over_https(model: str, streams: bool, certificate: tuple[Path, Path]) -> None:
    """Text, reasoning and a tool call, streamed and whole; the certificate is checked against the CA that is named."""
    said = Answer(text="hello", thinking="Hm.", tools=(("add", {"a": 1}),), streams=streams)

    async def main() -> Reply:
        async with serve(lambda _: said, tls=_tls(certificate)) as server:
            assert server.url.startswith("https://")
            models = Models(providers(server.url), environment(server.url, SSL_CERT_FILE=str(certificate[0])))
            return await put(models, a_call(model, tools=(ToolSpec(name="add", description="Adds."),)))

    reply = asyncio.run(main())
    assert (reply.text, [call.arguments for call in reply.tool_calls], bool(reply.opaque)) == (
        "hello",
        [{"a": 1}],
        True,
    )


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_custom_ca_is_honoured(variable: str, certificate: tuple[Path, Path]) -> None:
    """A server whose CA the environment names is trusted."""
    text, _ = _through_proxy("HERE/v1", {variable: str(certificate[0])}, _tls(certificate))
    assert text == "ok"


def test_a_secure_call_tunnels_through_the_proxy(certificate: tuple[Path, Path]) -> None:
    """HTTPS_PROXY gets a CONNECT and never sees the key."""
    variables = {"HTTPS_PROXY": "http://127.0.0.1:PORT", "SSL_CERT_FILE": str(certificate[0])}
    text, heads = _through_proxy("https://provider.test/v1", variables, _tls(certificate))
    assert text == "ok"
    assert heads[0].startswith("CONNECT provider.test:443 ")
    assert KEY not in heads[0]


def test_an_untrusted_certificate_is_one_sentence(certificate: tuple[Path, Path]) -> None:
    """The error names the address and SSL_CERT_FILE, and a retry is not worth it."""
    with pytest.raises(ModelError) as caught:
        _through_proxy("HERE/v1", {}, _tls(certificate))
    assert (caught.value.kind, caught.value.transient) == ("connection", False)
    assert "SSL_CERT_FILE" in str(caught.value)
    assert "https://127.0.0.1" in str(caught.value)


def test_a_missing_ca_file_is_a_usage_error(tmp_path: Path) -> None:
    """The variable and the file are named."""
    with pytest.raises(UsageError, match=r"SSL_CERT_FILE names .*absent\.pem"):
        _through_proxy("https://provider.test/v1", {"SSL_CERT_FILE": str(tmp_path / "absent.pem")})


def test_https_to_a_plain_port_is_one_sentence() -> None:
    """A server that does not speak TLS is a connection fault that names the cause."""

    async def main() -> ModelError:
        async with serve(ok) as server:
            base = server.url.replace("http:", "https:")
            models = Models({"mine": Provider(name="mine", base_url=base, wire="openai")}, {})
            with pytest.raises(ModelError) as caught:
                await put(models, a_call("mine:m"))
            return caught.value

    assert "https" in str(asyncio.run(main()))


def test_a_proxy_that_refuses_names_the_variable() -> None:
    """When the proxy will not connect, the remedy is the proxy setting, and the address is named."""

    async def main() -> ModelError:
        async with proxying(1) as proxy:
            proxy.refuse = True
            env = {"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{proxy.port}"}
            models = Models({"mine": Provider(name="mine", base_url="https://provider.test", wire="openai")}, env)
            with pytest.raises(ModelError) as caught:
                await put(models, a_call("mine:m"))
            assert "Proxy-Authorization: Basic" in proxy.heads[0]
            return caught.value

    found = asyncio.run(main())
    assert "HTTPS_PROXY and NO_PROXY" in str(found)
    assert "provider.test" in str(found)
    assert "secret" not in str(found)


def test_a_dead_proxy_names_the_variable() -> None:
    """When the proxy does not answer, the remedy is the proxy setting."""
    with pytest.raises(ModelError, match="HTTPS_PROXY and NO_PROXY"):
        _through_proxy("http://provider.test/v1", {"HTTP_PROXY": "http://127.0.0.1:1"})


@pytest.mark.slow
def test_a_get_reads_what_it_needs_and_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any status is an answer, a redirect too; a server that says nothing is named, with the seconds."""
    monkeypatch.setattr("chargehand.models.transport._GET_S", 1.0)
    answers = iter(
        [
            Answer(status=404, raw=b"x" * 100_000),
            Answer(status=302, raw=b"", headers={"Location": "/"}),
            Answer(silent=True),
        ]
    )

    async def main() -> None:
        async with serve(lambda _: next(answers)) as server:
            models = Models({}, {})
            endpoint = Endpoint("p", f"{server.url}/v1", {})
            assert await models.transport.get(endpoint, 10) == (404, b"x" * 10)
            assert (await models.transport.get(endpoint))[0] == 302
            with pytest.raises(ModelError, match=r"did not answer within 1 s"):
                await models.transport.get(endpoint)
            await models.close()

    asyncio.run(main())
