"""The record of a segment as objects: the conformance checks of the port, fences, altered and missing objects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from chargehand.engine.temporal.blob_journal import BlobJournal
from chargehand.engine.temporal.blob_store import BlobStore
from chargehand.errors import OwnershipLost, RecordDamaged, StorageError, StoreUnreachable, UsageError
from chargehand.events import Event, Warned
from chargehand.record.journal import Journal
from chargehand.record.journal_checks import JOURNAL_CHECKS, JournalPlace


@dataclass
class InStore:
    store: BlobStore
    run: str = "r1"

    def open(self, token: int | None = None) -> Journal:
        return BlobJournal.open(self.store, self.run, "t1", token)

    def read(self) -> Journal:
        return BlobJournal.read(self.store, self.run, "t1")


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The address of an S3-compatible server."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["folder", "encrypted", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    if request.param == "s3":
        address: str = request.getfixturevalue("s3")
        return make_bucket(address, monkeypatch)
    return BlobStore(tmp_path.as_uri(), b"secret" if request.param == "encrypted" else None)


def make_bucket(address: str, monkeypatch: pytest.MonkeyPatch) -> BlobStore:
    from urllib.request import Request, urlopen

    bucket = f"b{uuid4().hex[:12]}"
    credential = "Credential=k/20260101/us-east-1/s3/aws4_request"
    headers = {"Authorization": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=x"}
    urlopen(Request(f"{address}/{bucket}", method="PUT", headers=headers)).close()
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return BlobStore(f"s3://{bucket}/shared")


def test_a_bucket_that_does_not_exist_is_an_unreachable_store(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading, writing and looking for it: never a missing object; the message has no key and says what to check."""
    make_bucket(s3, monkeypatch)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIACANARY")
    store = BlobStore("s3://nothing-here/shared")
    for use in (store.check, lambda: store.create("runs/r1/a", b"x"), lambda: store.get("runs/r1/a")):
        with pytest.raises(StoreUnreachable, match=r"NoSuchBucket.*Check that") as raised:
            use()
        assert "AKIACANARY" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("check", JOURNAL_CHECKS, ids=lambda check: check.__name__)
def test_the_journal_keeps_its_contract(store: BlobStore, check: Callable[[JournalPlace], Awaitable[None]]) -> None:
    """The numbered contract holds in a folder, in an encrypted one and in a bucket."""
    asyncio.run(check(InStore(store)))


def _event(seq: int) -> Event:
    return Event("r1", seq, float(seq), None, None, Warned(message=f"event {seq}"))


def test_a_commit_whose_reply_was_lost_is_known_again(tmp_path: Path) -> None:
    """The object was written and the answer lost: the writer finds its own bytes and continues."""
    store = BlobStore(tmp_path.as_uri())
    journal = BlobJournal.open(store, "r1", "t1")
    create, lost = store.create, iter([True])

    def create_and_lose(path: str, body: bytes) -> bool:
        created = create(path, body)
        return created and not next(lost, False)

    store.create = create_and_lose  # type: ignore[method-assign]
    asyncio.run(journal.append([_event(1)], {}))
    asyncio.run(journal.append([_event(2)], {}))
    assert [event.seq for event in journal.events()] == [1, 2]


def test_a_thawed_worker_neither_writes_nor_takes_the_segment_back(tmp_path: Path) -> None:
    """A worker that was frozen while another took over finds the next name taken, and may not open again."""
    store = BlobStore(tmp_path.as_uri())
    frozen = BlobJournal.open(store, "r1", "t1", token=10_001)
    asyncio.run(frozen.append([_event(1)], {}))
    after = BlobJournal.open(store, "r1", "t1", token=10_002)
    with pytest.raises(OwnershipLost):
        asyncio.run(frozen.append([_event(2)], {}))
    with pytest.raises(OwnershipLost):
        BlobJournal.open(store, "r1", "t1", token=10_001)
    asyncio.run(after.append([_event(2)], {}))
    assert [event.seq for event in BlobJournal.read(store, "r1", "t1").events()] == [1, 2]


@pytest.mark.parametrize("key", [None, b"secret"], ids=["plain", "encrypted"])
def test_an_altered_object_is_not_read(tmp_path: Path, key: bytes | None) -> None:
    """One changed byte anywhere in an object is RecordDamaged, never another value."""
    store = BlobStore(tmp_path.as_uri(), key)
    journal = BlobJournal.open(store, "r1", "t1")
    asyncio.run(journal.append([_event(1)], {}))
    path = tmp_path / store.list(store.path("r1", "segments"))[-1]
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(RecordDamaged):
            BlobJournal.read(store, "r1", "t1")


def test_a_missing_object_is_reported(tmp_path: Path) -> None:
    """A hole in a segment is RecordDamaged with the name of what is missing."""
    store = BlobStore(tmp_path.as_uri())
    journal = BlobJournal.open(store, "r1", "t1")
    for seq in (1, 2, 3):
        asyncio.run(journal.append([_event(seq)], {}))
    (tmp_path / "runs/r1/segments/t1/00000003").unlink()
    with pytest.raises(RecordDamaged, match="00000003"):
        BlobJournal.read(store, "r1", "t1")


def test_with_a_key_neither_bodies_nor_names_can_be_read(tmp_path: Path) -> None:
    """Nothing of an event or of a task's id is in the folder; another key reads nothing."""
    store = BlobStore(tmp_path.as_uri(), b"secret")
    journal = BlobJournal.open(store, "r1", "canary-task")
    asyncio.run(journal.append([Event("r1", 1, 1.0, None, None, Warned(message="canary-text"))], {"h": b"canary-blob"}))
    for folder, _, files in os.walk(tmp_path):
        for file in files:
            assert "canary" not in os.path.join(folder, file)
            assert b"canary" not in Path(folder, file).read_bytes()
    first = store.list(store.path("r1", "segments"))[0]
    assert store.get(first)
    with pytest.raises(RecordDamaged):
        BlobStore(tmp_path.as_uri(), b"other").get(first)
    with pytest.raises(UsageError):
        BlobStore(tmp_path.as_uri()).get(first)


@pytest.mark.parametrize(("url", "error"), [
    ("file:///nowhere/at/all", StorageError),
    ("ftp://x", UsageError),
    ("s3://b/p", StoreUnreachable),
])  # fmt: skip
def test_a_store_that_cannot_be_used_is_reported(url: str, error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder, an unknown scheme, a bucket nobody answers for: typed, with the address, within seconds."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    with pytest.raises(error, match=url):
        BlobStore(url).create("runs/r1/x", b"")
