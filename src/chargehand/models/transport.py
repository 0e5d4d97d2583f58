"""Turns a request's bytes into a reply's bytes over HTTP: one pool of connections, proxies and custom CAs honoured."""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chargehand.errors import ModelError, UsageError
from chargehand.models import Attribution
from chargehand.models import model_errors as faults
from chargehand.models.model_errors import Endpoint
from chargehand.models.sse import Events

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

REPLY_LIMIT = 32 * 2**20
_ERROR_LIMIT = 64 * 2**10
_CONNECT_S = 15.0
# A reply that is not streamed sends its first byte when the last token is written, so this must outlast a long answer.
_IDLE_S = 300.0
# aiohttp warns of larger bodies given as bytes: it would copy them in one go.
_DIRECT_BODY = 2**20


@dataclass(frozen=True, slots=True)
class _Route:
    """How to post to a URL: the arguments of aiohttp's `post`, and headers for a proxy on the way."""

    post: Mapping[str, Any]
    headers: Mapping[str, str]


class Transport:
    """One pool of connections for all clients that share it; made at the first call, again after `close`.

    Proxy, CA and URL are worked out once for a URL. aiohttp's own `trust_env` would do it for each call, in a
    thread, and would add credentials from ~/.netrc.
    """

    def __init__(self, env: Mapping[str, str], *, idle_s: float = _IDLE_S) -> None:
        self._env = env
        self._idle_s = idle_s
        # The session and the loop it belongs to; a session never serves another loop.
        self._open: tuple[asyncio.AbstractEventLoop, ClientSession] | None = None
        self._tls: ssl.SSLContext | None = None
        self._routes: dict[str, _Route] = {}

    def prepare(self, url: str) -> None:
        """Work out the way to a URL; UsageError when the environment's proxy or CA file cannot be used."""
        self._routes[url] = self._route(url)

    async def send(self, endpoint: Endpoint, body: bytes, attribution: Attribution) -> bytes:
        """The whole reply."""
        import aiohttp

        try:
            async with self._post(endpoint, body, attribution) as response:
                if not 200 <= response.status < 300:
                    raise await _read_refusal(endpoint, response)
                return await _read(endpoint, response)
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._connection_error(endpoint, error) from None

    async def stream(
        self, endpoint: Endpoint, body: bytes, attribution: Attribution, on_event: Callable[[bytes], None]
    ) -> bytes | None:
        """Hand each server-sent event to `on_event`; a server that did not stream gives its whole reply instead."""
        import aiohttp

        try:
            async with self._post(endpoint, body, attribution) as response:
                if not 200 <= response.status < 300:
                    raise await _read_refusal(endpoint, response)
                if "json" in response.content_type:
                    return await _read(endpoint, response)
                await self._listen(endpoint, response, on_event)
                return None
        except (TimeoutError, aiohttp.ClientError) as error:
            raise self._connection_error(endpoint, error) from None

    async def _listen(self, endpoint: Endpoint, response: ClientResponse, on_event: Callable[[bytes], None]) -> None:
        """Hand over the events until the stream ends. Comments and blank lines are as good as silence."""
        loop = asyncio.get_running_loop()
        events = Events()
        size = 0
        async with asyncio.timeout(self._idle_s) as silence:
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > REPLY_LIMIT:
                    raise faults.too_large(endpoint, REPLY_LIMIT)
                for event in events.feed(chunk):
                    on_event(event)
                    silence.reschedule(loop.time() + self._idle_s)

    async def close(self) -> None:
        if self._open is not None:
            _, session = self._open
            self._open = None
            await session.close()

    def _post(
        self, endpoint: Endpoint, body: bytes, attribution: Attribution
    ) -> AbstractAsyncContextManager[ClientResponse]:
        import aiohttp

        session = self._session()
        if endpoint.url not in self._routes:
            self.prepare(endpoint.url)
        route = self._routes[endpoint.url]
        # aiohttp would look up what to do with bytes among all the kinds of bodies it knows.
        data = aiohttp.BytesPayload(body) if len(body) < _DIRECT_BODY else io.BytesIO(body)
        headers = {**endpoint.headers, **route.headers, **_attribution_headers(attribution)}
        return session.post(data=data, headers=headers, allow_redirects=False, **route.post)

    def _connection_error(self, endpoint: Endpoint, error: Exception) -> ModelError:
        import aiohttp

        match error:
            case aiohttp.ConnectionTimeoutError():
                message = f"no connection to {endpoint.provider} at {endpoint.url} within {_CONNECT_S:g} s"
                return ModelError("connection", f"{message}; check the network, proxy and base URL", unsent=True)
            case TimeoutError():
                message = (
                    f"{endpoint.provider} at {endpoint.url} sent nothing for {self._idle_s:g} s (comments do not count)"
                )
                return ModelError("timeout", f"{message}; ask for less at once or use a faster model")
            case _:
                return _unreachable(endpoint, error)

    def _session(self) -> ClientSession:
        loop = asyncio.get_running_loop()
        if self._open is not None and self._open[0] is loop:
            return self._open[1]
        import aiohttp

        session = aiohttp.ClientSession(
            # How many calls run at once is decided above; the pool must not be a second, hidden limit.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=300),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=self._idle_s),
        )
        self._open = (loop, session)
        return session

    def _route(self, url: str) -> _Route:
        from yarl import URL

        post: dict[str, Any] = {"url": URL(url)}
        secure = url.startswith("https:")
        if secure:
            post["ssl"] = self._tls = self._tls or _tls_context(self._env)
        login: dict[str, str] = {}
        if proxy := self._proxy(url):
            parts = _proxy_url(proxy)
            post["proxy"] = parts.with_user(None)
            if parts.user:
                pair = base64.b64encode(f"{parts.user}:{parts.password or ''}".encode()).decode()
                login = {"Proxy-Authorization": f"Basic {pair}"}
        if secure and login:
            # Only the CONNECT may carry it: what goes through the tunnel is the provider's.
            post["proxy_headers"], login = login, {}
        return _Route(post, login)

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
    return headers


def _header(value: str) -> str:
    """The value as it may be in a header: printable ASCII of bounded length."""
    if len(value) <= 255 and value.isascii() and value.isprintable():
        return value
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in value[:255])


async def _read_refusal(endpoint: Endpoint, response: ClientResponse) -> ModelError:
    said = await response.content.read(_ERROR_LIMIT)
    return faults.from_status(endpoint, response.status, response.headers, said)


async def _read(endpoint: Endpoint, response: ClientResponse) -> bytes:
    length = response.content_length
    if length is not None and length > REPLY_LIMIT:
        raise faults.too_large(endpoint, REPLY_LIMIT)
    if length is not None and "Content-Encoding" not in response.headers:
        return await response.read()
    # Without a length, or compressed, only counting shows how much there is.
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > REPLY_LIMIT:
            raise faults.too_large(endpoint, REPLY_LIMIT)
        chunks.append(chunk)
    return b"".join(chunks)


def _unreachable(endpoint: Endpoint, error: Exception) -> ModelError:
    import aiohttp

    where = f"{endpoint.provider} at {endpoint.url}"
    match error:
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
                "connection", f"{message}; check that the base URL's port speaks https", transient=False, unsent=True
            )
        case aiohttp.ClientHttpProxyError():
            message = f"the proxy refused to connect to {where} ({error.status})"
            return ModelError("connection", f"{message}; check HTTPS_PROXY and NO_PROXY", unsent=True)
        case aiohttp.ClientProxyConnectionError():
            return ModelError(
                "connection", f"the proxy for {where} does not answer; check HTTPS_PROXY and NO_PROXY", unsent=True
            )
        case aiohttp.ClientConnectorError():
            message = f"cannot reach {where}: {endpoint.safe(error.strerror or str(error.os_error))}"
            return ModelError("connection", f"{message}; check that it runs, the base URL and the network", unsent=True)
        case _:
            # The text of aiohttp's response errors can hold request headers, so only the type's name is shown.
            return ModelError("connection", f"the connection to {where} broke ({type(error).__name__})")
