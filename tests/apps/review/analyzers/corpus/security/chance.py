"""Tokens for resetting a password."""

import random
import string


def reset_token() -> str:
    token = "".join(random.choice(string.ascii_letters) for _ in range(32))
    return token


def session_id() -> int:
    session = random.randint(0, 2**32)
    return session
