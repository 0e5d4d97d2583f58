"""A URL becomes the proxy the environment names for it, or none."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import getproxies_environment


def proxy_for(url: str, proxies: Mapping[str, str] | None = None) -> str | None:
    """`proxies` by scheme, with `all` and `no`; without them those of the environment as it is now."""
    known = getproxies_environment() if proxies is None else proxies
    parts = urlsplit(url)
    host = parts.hostname or ""
    for entry in known.get("no", "").lower().split(","):
        name = entry.strip().lstrip(".")
        if name and (name == "*" or name in (host, parts.netloc.lower()) or host.endswith(f".{name}")):
            return None
    return known.get(parts.scheme) or known.get("all")
