"""Lines whose reviewers said: this is meant."""

import hashlib
import pickle
import subprocess


def own_cache(data: bytes) -> object:
    return pickle.loads(data)  # nosec B301


def etag(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()  # noqa: S324


def tool(command: str) -> None:
    subprocess.run(command, shell=True, check=True)  # noqa: S602


def everything(text: str) -> object:
    return eval(text)  # nosec


PASSWORD = "Tr0ub4dor-and-3-horses"  # noqa: S105
API_TOKEN = "q8W2nR5tZ7xC1vB4mL9k"  # pragma: allowlist secret
