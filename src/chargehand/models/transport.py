"""Turns a request's bytes into a reply's bytes over HTTP: one pool of connections, proxies and custom CAs honoured."""

from __future__ import annotations

import asyncio
import base64
import codecs
import io
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chargehand.errors import ModelError, UsageError
from chargehand.limits.event_loop_turns import LoopTurns
from chargehand.models import Attribution
from chargehand.models import provider_errors as faults
from chargehand.models.provider_errors import Endpoint
from chargehand.models.provider_settings import is_loopback
from chargehand.models.sse import Events

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

REPLY_LIMIT = 32 * 2**20
# A stream has hundreds of bytes for each token: 128,000 tokens are about 40 MB.
STREAM_LIMIT = 256 * 2**20
_ERROR_LIMIT = 64 * 2**10
_CONNECT_S = 15.0
# How long the answer to a GET may take in total: it is a list of models, or any sign that a server is running.
_GET_S = 10.0
# How long to wait for the rest of a refusal: its status alone says most of it.
_REFUSAL_S = 10.0
# How a stream of events begins, whatever content type the server gives.
_EVENT_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
# At most this many bytes are needed to see it, a byte order mark included.
_EVENTS_BEGIN = 9
# aiohttp warns about larger bodies given as bytes: it would copy them in one step.
_DIRECT_BODY = 2**20


@dataclass(frozen=True, slots=True)
class _Route:
    """How to reach a URL: the arguments of aiohttp's requests, and headers for a proxy on the way."""

    arguments: Mapping[str, Any]
    headers: Mapping[str, str]


class Transport:
    """One pool of connections for all clients that share it; made at the first call, again after `close`.

    Proxy, CA and URL are determined once for each URL. aiohttp's own `trust_env` would do it for each call, in a
    thread, and would add credentials from ~/.netrc.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        # The loop and its objects: a session never serves another loop. Sessions are keyed by whether connections are
        # kept.
        self._open: tuple[asyncio.AbstractEventLoop, dict[bool, ClientSession], LoopTurns] | None = None
        # URLs that have answered, and those of servers that close the connection after a reply without saying so.
        self._answered: set[str] = set()
        self._closing: set[str] = set()
        self._tls: ssl.SSLContext | None = None
        self._routes: dict[str, _Route] = {}

    def prepare(self, url: str) -> None:
        """Work out the way to a URL; UsageError when the environment's proxy or CA file cannot be used."""
        self._routes[url] = self._route(url)

    async def send(
        self, endpoint: Endpoint, body: bytes, attribution: Attribution, on_events: Callable[[list[bytes]], None]
    ) -> bytes | None:
        """Hand server-sent events to `on_events` as they arrive; a reply that is not streamed is returned whole.

        There is no time limit except for connecting: the caller decides how long silence may last.
        """
        import aiohttp

        try:
            await self._turns().wait()
            request = await self._request(endpoint, body, attribution)
            async with request as response:
                self._answered.add(endpoint.url)
                await self._turns().wait()
                if not 200 <= response.status < 300:
                    raise await _read_refusal(endpoint, response)
                return await _read(endpoint, response, on_events)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise _connection_error(endpoint, error) from None

    async def _request(self, endpoint: Endpoint, body: bytes, attribution: Attribution) -> ClientResponse:
        """The response, its headers read.

        A server may close a kept connection at the moment in which it is used again: llama.cpp closes each one after a
        streamed reply. The server never read that request, so it is sent once more, and connections to that server are
        no longer kept.
        """
        import aiohttp

        url = endpoint.url
        may_be_kept = url in self._answered and url not in self._closing
        try:
            return await self._post(endpoint, body, attribution)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not may_be_kept or isinstance(error, aiohttp.ClientConnectorError):
                raise
            self._closing.add(url)
            return await self._post(endpoint, body, attribution)

    async def get(self, endpoint: Endpoint, most: int = _ERROR_LIMIT) -> tuple[int, bytes]:
        """The status that a GET is answered with, and the body, of which at most `most` bytes are read.

        Whatever the status, it is an answer; redirects are not followed.
        """
        import aiohttp

        try:
            session, route = self._session(keeps=True), self._known_route(endpoint.url)
            headers = {**endpoint.headers, **route.headers}
            timeout = aiohttp.ClientTimeout(total=_GET_S, sock_connect=_GET_S)
            async with session.get(
                headers=headers, allow_redirects=False, timeout=timeout, **route.arguments
            ) as response:
                return response.status, await _read_beginning(response, most)
        except (TimeoutError, aiohttp.ClientError) as error:
            if isinstance(error, TimeoutError):
                message = f"{endpoint.provider} at {endpoint.url} did not answer within {_GET_S:g} s"
                raise ModelError("timeout", f"{message}; check the network, the proxy and this address") from None
            raise _connection_error(endpoint, error) from None

    async def close(self) -> None:
        if self._open is not None:
            _, sessions, _ = self._open
            self._open = None
            for session in sessions.values():
                await session.close()

    def _post(self, endpoint: Endpoint, body: bytes, attribution: Attribution) -> Awaitable[ClientResponse]:
        import aiohttp

        session, route = self._session(keeps=endpoint.url not in self._closing), self._known_route(endpoint.url)
        # aiohttp would search all the kinds of bodies it knows for the one that takes bytes.
        data = aiohttp.BytesPayload(body) if len(body) < _DIRECT_BODY else io.BytesIO(body)
        headers = {**endpoint.headers, **route.headers, **_attribution_headers(attribution)}
        return session.post(data=data, headers=headers, allow_redirects=False, **route.arguments)

    def _known_route(self, url: str) -> _Route:
        if url not in self._routes:
            self.prepare(url)
        return self._routes[url]

    def _turns(self) -> LoopTurns:
        return self._sessions_of_loop()[1]

    def _session(self, *, keeps: bool) -> ClientSession:
        """The session that keeps connections for the next request, or the one that closes them after each."""
        sessions, _ = self._sessions_of_loop()
        if (known := sessions.get(keeps)) is not None:
            return known
        import aiohttp

        from chargehand.models.connector import Connector

        sessions[keeps] = aiohttp.ClientSession(
            # How many calls run at once is decided above; the pool must not be a second, hidden limit.
            connector=Connector(
                limit=0, ttl_dns_cache=300, force_close=not keeps, keepalive_timeout=30 if keeps else None
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        )
        return sessions[keeps]

    def _sessions_of_loop(self) -> tuple[dict[bool, ClientSession], LoopTurns]:
        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            self._open = (loop, {}, LoopTurns())
        return self._open[1:]

    def _route(self, url: str) -> _Route:
        from yarl import URL

        arguments: dict[str, Any] = {"url": URL(url)}
        secure = url.startswith("https:")
        if secure:
            arguments["ssl"] = self._tls = self._tls or _tls_context(self._env)
        login: dict[str, str] = {}
        if proxy := self._proxy(url):
            parts = _proxy_url(proxy)
            arguments["proxy"] = parts.with_user(None)
            if parts.user:
                pair = base64.b64encode(f"{parts.user}:{parts.password or ''}".encode()).decode()
                login = {"Proxy-Authorization": f"Basic {pair}"}
        if secure and login:
            # Only the CONNECT may carry it: everything in the tunnel goes to the provider.
            arguments["proxy_headers"], login = login, {}
        return _Route(arguments, login)

    def _proxy(self, url: str) -> str | None:
        scheme = urlsplit(url).scheme
        if _is_bypassed(url, self._variable("no_proxy") or ""):
            return None
        return self._variable(f"{scheme}_proxy") or self._variable("all_proxy")

    def _variable(self, name: str) -> str | None:
        return self._env.get(name) or self._env.get(name.upper())


def _proxy_url(proxy: str) -> URL:
    from yarl import URL

    try:
        parts = URL(proxy if "://" in proxy else f"http://{proxy}")
    except ValueError:
        parts = URL()
    if parts.scheme not in ("http", "https") or not parts.host:
        shown = proxy.rpartition("@")[2]
        raise UsageError(f"The proxy {shown!r} in the environment cannot be used: set HTTPS_PROXY to http://HOST:PORT.")
    return parts


def _is_bypassed(url: str, no_proxy: str) -> bool:
    """Whether NO_PROXY lists the URL's host, its domain or its host with port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    for entry in no_proxy.lower().split(","):
        name = entry.strip().lstrip(".")
        if name and (name == "*" or name in (host, parts.netloc.lower()) or host.endswith(f".{name}")):
            return True
    return False


def _tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """The system's CAs, and those the environment names."""
    context = ssl.create_default_context()
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        if path := env.get(name):
            try:
                context.load_verify_locations(cafile=path)
            except OSError as error:
                raise UsageError(f"{name} names {path}, which is not a readable CA file: {error.strerror}.") from None
    return context


def _attribution_headers(attribution: Attribution) -> dict[str, str]:
    headers = {
        "Idempotency-Key": _header(attribution.idempotency_key),
        "X-Chargehand-Run": _header(attribution.run),
        "X-Chargehand-Role": _header(attribution.role),
    }
    if attribution.task is not None:
        headers["X-Chargehand-Task"] = _header(attribution.task)
    if attribution.attempt is not None:
        headers["X-Chargehand-Attempt"] = str(attribution.attempt)
    if attribution.traceparent is not None:
        headers["traceparent"] = attribution.traceparent
    return headers


def _header(value: str) -> str:
    """The value in a form that a header may have: printable ASCII of bounded length."""
    if len(value) <= 255 and value.isascii() and value.isprintable():
        return value
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in value[:255])


async def _read_refusal(endpoint: Endpoint, response: ClientResponse) -> ModelError:
    said = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(_REFUSAL_S):
            said = await response.content.read(_ERROR_LIMIT)
    return faults.from_status(endpoint, response.status, response.headers, said)


async def _read_beginning(response: ClientResponse, most: int) -> bytes:
    """The body, cut after `most` bytes."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size >= most:
            break
    return b"".join(chunks)[:most]


async def _read(endpoint: Endpoint, response: ClientResponse, on_events: Callable[[list[bytes]], None]) -> bytes | None:
    """Read to the end. The beginning of the body shows whether it has events: content types are often wrong."""
    if (response.content_length or 0) > REPLY_LIMIT:
        raise faults.too_large(endpoint, REPLY_LIMIT)
    events: Events | None = None
    # The body without leading white space, until it is known to be a stream of events.
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > (limit := REPLY_LIMIT if events is None else STREAM_LIMIT):
            raise faults.too_large(endpoint, limit)
        if events is not None:
            data = chunk
        elif data := chunk if chunks else chunk.lstrip():
            chunks.append(data)
            if len(chunks) > _EVENTS_BEGIN or not _begins_events(data := b"".join(chunks)):
                continue
            events = Events()
        else:
            continue
        if arrived := events.feed(data):
            on_events(arrived)
    return b"".join(chunks) if events is None else None


def _begins_events(body: bytes) -> bool:
    return body[:_EVENTS_BEGIN].removeprefix(codecs.BOM_UTF8).startswith(_EVENT_FIELDS)


def _connection_error(endpoint: Endpoint, error: Exception) -> ModelError:
    import aiohttp

    where = f"{endpoint.provider} at {endpoint.url}"
    match error:
        case aiohttp.ConnectionTimeoutError():
            message = f"no connection to {where} within {_CONNECT_S:g} s"
            return ModelError("connection", f"{message}; check the network, the proxy and this address", unsent=True)
        case aiohttp.ClientPayloadError() if _is_badly_packed(error):
            return faults.badly_packed(endpoint)
        case aiohttp.ClientConnectorCertificateError():
            why = endpoint.safe(str(error.certificate_error))
            remedy = "name the right CA file in SSL_CERT_FILE"
            return ModelError(
                "connection",
                f"the certificate of {where} is not trusted ({why}); {remedy}",
                transient=False,
                unsent=True,
            )
        case aiohttp.ClientConnectorSSLError():
            message = f"no secure connection to {where}"
            return ModelError(
                "connection", f"{message}; check that its port speaks https", transient=False, unsent=True
            )
        case aiohttp.ClientHttpProxyError():
            message = f"the proxy refused to connect to {where} ({error.status})"
            return ModelError("connection", f"{message}; check HTTPS_PROXY and NO_PROXY", unsent=True)
        case aiohttp.ClientProxyConnectionError():
            return ModelError(
                "connection", f"the proxy for {where} does not answer; check HTTPS_PROXY and NO_PROXY", unsent=True
            )
        case aiohttp.ClientConnectorError():
            # asyncio says only "Connect call failed" and an address, although the system has a word for the error.
            number = error.os_error.errno or 0
            why = os.strerror(number).lower() if number > 0 else error.strerror or str(error.os_error)
            message = f"cannot reach {where}: {endpoint.safe(why)}"
            remedy = "that it runs at this address" if is_loopback(endpoint.url) else "the network and this address"
            return ModelError("connection", f"{message}; check {remedy}", unsent=True)
        case _:
            # The text of aiohttp's response errors can hold request headers, so only the type's name is shown.
            message = f"the connection to {where} broke ({type(error).__name__})"
            return ModelError("connection", f"{message}; check the network, and the server's own log")


def _is_badly_packed(error: BaseException) -> bool:
    from aiohttp.http_exceptions import ContentEncodingError

    return isinstance(error.__cause__, ContentEncodingError)
