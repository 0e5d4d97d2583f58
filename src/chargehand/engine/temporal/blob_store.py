"""Objects by path, in a folder or a bucket: put once, read whole, listed in order. Altered objects are refused.

A path is `runs/RUN/KIND/NAME.../NUMBER`. With a key the bodies are encrypted, and the names, which hold ids of tasks,
are hidden; run and kind stay readable, so that a run can be listed and removed as a whole.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from chargehand.errors import StorageError, StoreUnreachable, UsageError
from chargehand.record.storage_errors import damage_error

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# The first bytes of an object: how the rest is to be read.
_PLAIN, _SEALED = b"CHP1", b"CHS1"
_DIGEST, _NONCE = 32, 12
# A store that does not answer is reported after this long, its own retries included.
_TIMEOUT_S = 10
_READERS = 16
INSTALL = "pip install 'chargehand[temporal]'"


class BlobStore:
    """Safe to use from several threads. Failures are StoreUnreachable, RecordDamaged or FileNotFoundError."""

    def __init__(self, url: str, key: bytes | None = None) -> None:
        self.url = url
        self._store = _open(url)
        self._folder = Path(url.removeprefix("file://")) if url.startswith("file://") else None
        self._key = None if key is None else hashlib.sha256(b"body" + key).digest()
        self._names = None if key is None else hashlib.sha256(b"name" + key).digest()

    def path(self, run: str, kind: str, *names: str) -> str:
        """Where an object of a run is, or the folder of several."""
        return "/".join(("runs", run, kind, *(self._hide(name) for name in names)))

    def _hide(self, name: str) -> str:
        if self._names is None:
            return quote(name, safe="@.-_")
        return hmac.new(self._names, name.encode(), hashlib.sha256).hexdigest()[:32]

    # -- writing -----------------------------------------------------------------------------------------------------

    def create(self, path: str, body: bytes) -> bool:
        """Put an object durably where there is none; False where there is one."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._translate_errors(path):
            try:
                obstore.put(self._store, path, self._seal(path, body), mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            self._sync(path)
        return True

    def put(self, path: str, body: bytes) -> None:
        """Put an object durably, in place of an existing one."""
        import obstore

        with self._translate_errors(path):
            obstore.put(self._store, path, self._seal(path, body), use_multipart=False)
            self._sync(path)

    async def create_async(self, path: str, body: bytes) -> bool:
        return await asyncio.to_thread(self.create, path, body)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; those that are not there are left out."""
        import obstore

        for path in paths:
            with self._translate_errors(path):
                try:
                    obstore.delete(self._store, path)
                except FileNotFoundError:
                    continue

    def _sync(self, path: str) -> None:
        """A folder keeps what a dead process wrote. To survive a crash of the machine, the data is synced to disk."""
        if self._folder is None:
            return
        whole = self._folder / path
        for each in (whole, whole.parent):
            file = os.open(each, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def check(self) -> None:
        """StoreUnreachable where the store does not answer, or refuses."""
        import obstore

        with self._translate_errors("runs"):
            next(iter(obstore.list(self._store, "runs", chunk_size=1)), None)  # pyright: ignore[reportUnknownMemberType]

    # -- reading -----------------------------------------------------------------------------------------------------

    def get(self, path: str) -> bytes:
        """FileNotFoundError where there is none."""
        import obstore

        with self._translate_errors(path):
            whole = bytes(obstore.get(self._store, path).bytes())
        return self._unseal(path, whole)

    def has(self, path: str) -> bool:
        import obstore

        with self._translate_errors(path):
            try:
                obstore.head(self._store, path)
            except FileNotFoundError:
                return False
        return True

    def get_many(self, paths: list[str]) -> list[bytes]:
        """Several objects, in the order asked for."""
        if self._folder is not None or len(paths) < 2:
            return [self.get(path) for path in paths]
        with ThreadPoolExecutor(_READERS) as readers:
            return list(readers.map(self.get, paths))

    def list(self, folder: str, after: str | None = None) -> list[str]:
        """The paths of all objects below a folder, in order; or only those after a given path."""
        import obstore

        with self._translate_errors(folder):
            found = chain.from_iterable(obstore.list(self._store, folder))  # pyright: ignore[reportUnknownMemberType]
            paths = sorted(each["path"] for each in found)
        return paths if after is None else [path for path in paths if path > after]

    def list_folders(self, folder: str) -> list[str]:
        """The names of the folders in a folder."""
        import obstore

        with self._translate_errors(folder):
            found = obstore.list_with_delimiter(self._store, folder)  # pyright: ignore[reportUnknownMemberType]
        return sorted(each.rpartition("/")[2] for each in found["common_prefixes"])

    # -- parts -------------------------------------------------------------------------------------------------------

    def _seal(self, path: str, body: bytes) -> bytes:
        if self._key is None:
            return _PLAIN + hashlib.sha256(body).digest() + body
        nonce = os.urandom(_NONCE)
        return _SEALED + nonce + _cipher(self._key).encrypt(nonce, body, path.encode())

    def _unseal(self, path: str, whole: bytes) -> bytes:
        kind, rest = whole[:4], whole[4:]
        if kind == _PLAIN:
            digest, body = rest[:_DIGEST], rest[_DIGEST:]
            if hashlib.sha256(body).digest() != digest:
                raise damage_error(path, "its checksum does not fit")
            return body
        if kind != _SEALED:
            raise damage_error(path, "it is not an object of chargehand")
        if self._key is None:
            raise UsageError(f"{path} is encrypted: set the variable that [temporal] key_env names.")
        try:
            return _cipher(self._key).decrypt(rest[:_NONCE], rest[_NONCE:], path.encode())
        except Exception as error:  # of a class of the library's own
            raise damage_error(path, "it was altered, or written with another key") from error

    @contextmanager
    def _translate_errors(self, path: str) -> Generator[None]:
        """Turn failures of the store into our own errors."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError) and "NoSuchBucket" not in str(error):
                raise
            raise StoreUnreachable(
                f"The blob store {self.url} failed at {path}: {_reason(error)}. {_remedy(self.url)}"
            ) from error


def _open(url: str) -> ObjectStore:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise UsageError(f"Temporal needs {error.name}, which is not installed: {INSTALL}") from None
    options: dict[str, Any] = {}
    if url.startswith("file://"):
        folder = Path(url.removeprefix("file://"))
        if not folder.is_absolute() or not folder.is_dir():
            raise StorageError(f"[temporal] blobs names {url}: there is no such folder. Create it, or name another.")
    elif url.startswith(("s3://", "gs://", "az://", "http://", "https://")):
        options = {
            "retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=_TIMEOUT_S)},
            "client_options": {
                "timeout": timedelta(seconds=_TIMEOUT_S),
                "connect_timeout": timedelta(seconds=3),
                "allow_http": True,
            },
        }
    else:
        raise UsageError(f"[temporal] blobs is {url!r}: give file:///FOLDER, s3://BUCKET/PREFIX, gs:// or az://.")
    try:
        return from_url(url, **options)
    except (BaseError, ValueError) as error:
        raise StoreUnreachable(f"The blob store {url} cannot be opened: {_reason(error)}. {_remedy(url)}") from error


def _reason(error: Exception) -> str:
    """What the library said, in one line; of a reply of S3 the code alone, since the rest can quote an access key."""
    said = " ".join(str(error).split("\n\nDebug source", 1)[0].split())
    said = re.sub(r" in [\d.]+m?s(, after \d+ retries)?(, max_retries: \d+)?(, retry_timeout: \d+s)?", "", said)
    said = re.sub(r"^(Generic \w+ error|Object at location \S+ not found): ", "", said)
    head, _, reply = said.partition("<?xml")
    if reply:
        code = re.search("<Code>(.*?)</Code>", reply)
        said = head.rstrip(": ") + ("" if code is None else f": {code[1]}")
    return said[:300].rstrip(". ")


def _remedy(url: str) -> str:
    if url.startswith("file://"):
        return "Check that the folder exists, that you may write to it, and that the disk has room."
    if url.startswith("s3://"):
        return (
            "Check that it answers, that the bucket exists, and the AWS_... variables (endpoint, region, credentials)."
        )
    return "Check that it answers, and its credentials."


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
