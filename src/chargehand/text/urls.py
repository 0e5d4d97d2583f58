"""Text -> the urls in it, in one normal form: scheme and host in lower case, no fragment, no slash at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chargehand.values.lazy_regex import lazy_regex

_URL = lazy_regex(r"(?:https?://|\bwww\.(?=[A-Za-z0-9]))[^\s<>\"`|\\^{}\[\]\u2028\u2029]+", re.IGNORECASE)
_AFTER = ".,;:!?*_~'\u2019\u201d\u2026"
_PARTS = lazy_regex(r"(?:(https?)://)?([^/?#]*)([^#]*)", re.IGNORECASE)
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


def urls(text: str) -> Iterator[str]:
    """Each url as written, without the punctuation that follows it in a sentence, in order."""
    for found in _URL.finditer(text):
        yield _trim_url(found[0])


def normal_urls(text: str) -> tuple[str, ...]:
    """The urls in a text in their normal form, each once, in order."""
    if "://" not in text and "www." not in text.lower():
        return ()
    return tuple(dict.fromkeys(normal(url) for url in urls(text)))


def normal(url: str) -> str:
    """The form that all spellings of the same url share; without a scheme, https is assumed."""
    parts = _PARTS.match(url)
    if parts is None:
        return url
    scheme, host = (parts[1] or "https").lower(), parts[2].lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORT[scheme])}{parts[3].rstrip('/')}"


def _trim_url(url: str) -> str:
    """`(see https://a.b/c_(d))` holds `https://a.b/c_(d)`: a bracket that opens before the url is not part of it."""
    opened = url.count("(")
    closed = url.count(")")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and closed > opened:
            closed -= 1
        elif last not in _AFTER:
            break
        end -= 1
    return url[:end]
