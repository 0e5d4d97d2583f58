"""A URL and the addresses its host has become a Target that may be connected to, or a ToolError that says why not.

The connection uses exactly what was checked: the same parsed URL and the same addresses.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from chargehand.errors import ToolError, ToolErrorCode

if TYPE_CHECKING:
    from yarl import URL

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# A host's name and port -> its addresses.
Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]

MAX_URL = 2000
PORTS = frozenset({80, 443, 8080, 8443})
HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
# Names that by standard or convention belong to a private network or to a machine's own services.
PRIVATE_NAMES = (
    *(".localhost", ".local", ".internal", ".intranet", ".private", ".corp", ".home", ".lan", ".localdomain"),
    *(".arpa", ".onion", ".test", ".invalid", ".example"),
)
# IPv4: everything outside the public internet (IANA's registry), and a cloud's service at a public address.
NOT_PUBLIC = tuple(
    ipaddress.IPv4Network(each)
    for each in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
        *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",
    )
)
# IPv6: global unicast without addresses that contain an IPv4 address (Teredo, 6to4) or have a special use. Mapped,
# compatible and NAT64 forms of IPv4 are outside global unicast.
GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
SPECIAL = tuple(ipaddress.IPv6Network(each) for each in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


@dataclass(frozen=True)
class CheckedTarget:
    """A URL that may be fetched, and the only addresses it may be fetched from."""

    url: URL
    host: str
    addresses: tuple[str, ...]


async def system_resolve(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver gives."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


def parse_url(text: str) -> URL:
    """The parsed URL; ToolError unless it is plain http or https."""
    from yarl import URL

    if not text or len(text) > MAX_URL:
        _refuse(text, f"is not a URL of at most {MAX_URL} characters")
    if any(c.isspace() or not c.isprintable() or c == "\\" for c in text):
        _refuse(text, "has blanks, control characters or backslashes in it")
    if not re.match(r"https?://[^/]", text, re.IGNORECASE):
        _refuse(text, "is not an http or https URL")
    try:
        url = URL(text)
        host, port = url.raw_host, url.port
    except ValueError:
        _refuse(text, "is not a URL")
    if url.raw_user is not None or url.raw_password is not None or "@" in url.raw_authority:
        _refuse(text, "has a user name or password in it")
    if not host or port is None:
        _refuse(text, "names no host")
    return url


async def check_target(url: URL, resolve: Resolve, ports: frozenset[int], exempt: frozenset[str]) -> CheckedTarget:
    """The target of a URL; hosts in `exempt` are not checked. Every address of the host must be public."""
    text, host, port = str(url), (url.raw_host or "").removesuffix(".").lower(), url.port or 0
    if port not in ports:
        _refuse(text, f"has the port {port}; only {', '.join(map(str, sorted(ports)))} are fetched")
    if (literal := _literal(host)) is not None:
        if not is_public(literal):
            _refuse(text, "is not a public address")
        return CheckedTarget(url, host, (str(literal),))
    if not HOST.fullmatch(host) or len(host) > 253:
        _refuse(text, "does not name a public host")
    if f".{host}".endswith(PRIVATE_NAMES):
        _refuse(text, "is not a public host's name")
    try:
        found = await resolve(host, port)
    except (OSError, UnicodeError):
        found = []
    if not found:
        _refuse(text, "cannot be reached: its host is not known", "not_found")
    addresses = [_literal(each) for each in found]
    if host not in exempt and not all(each is not None and is_public(each) for each in addresses):
        _refuse(text, "leads to an address that is not public")
    return CheckedTarget(url, host, tuple(found))


def is_public(address: Address) -> bool:
    """Whether the address is on the public internet, in whatever form it is written."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in NOT_PUBLIC)
    if address.scope_id is not None:
        return False
    return address in GLOBAL_UNICAST and not any(address in network for network in SPECIAL)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _refuse(url: str, why: str, code: ToolErrorCode = "not_allowed") -> NoReturn:
    shown = "".join(c if c.isprintable() else "?" for c in url[:200])
    raise ToolError(f"{shown or 'The empty URL'} {why}. Only pages on the public internet are fetched.", code)
