"""The environment -> how a URL is reached: through which proxy, and with which trusted certificates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chargehand.errors import ToolError

if TYPE_CHECKING:
    import ssl


def proxy_for(url: str, proxies: Mapping[str, str] | None = None) -> str | None:
    """`proxies` by scheme, with `all` and `no`; without them, the proxies of the current environment."""
    from urllib.request import getproxies_environment

    known = getproxies_environment() if proxies is None else proxies
    parts = urlsplit(url)
    host = parts.hostname or ""
    for entry in known.get("no", "").lower().split(","):
        name = entry.strip().lstrip(".")
        if name and (name == "*" or name in (host, parts.netloc.lower()) or host.endswith(f".{name}")):
            return None
    proxy = known.get(parts.scheme) or known.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def tls(url: str) -> ssl.SSLContext | bool:
    """What an https URL is checked with: the system's CAs, and those the environment names."""
    if not url.startswith("https:"):
        return True
    import ssl

    context = ssl.create_default_context()
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        if path := os.environ.get(name):
            try:
                context.load_verify_locations(cafile=path)
            except OSError:
                raise ToolError(
                    f"{name} does not name a readable CA file, so nothing is fetched over https.", "unavailable"
                ) from None
    return context
