"""Passwords at rest."""

import hashlib


def stored(password: str) -> str:
    return hashlib.md5(password.encode()).hexdigest()


def signed(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()
