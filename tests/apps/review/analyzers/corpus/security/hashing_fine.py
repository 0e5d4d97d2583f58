"""Names of cache files, and passwords with a slow hash."""

import hashlib


def cache_name(url: str) -> str:
    return hashlib.md5(url.encode(), usedforsecurity=False).hexdigest()


def digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def stored(password: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=2**14, r=8, p=1)
