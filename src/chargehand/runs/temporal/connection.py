"""The `[temporal]` settings -> a client of the server and the blob store; problems with either within seconds."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chargehand.engine.temporal.blob_store import INSTALL, BlobStore
from chargehand.errors import UsageError
from chargehand.record.private_files import private_folder
from chargehand.settings.settings import Settings, TemporalSettings

if TYPE_CHECKING:
    from temporalio.client import Client
    from temporalio.runtime import Runtime
    from temporalio.service import TLSConfig

_CONNECT_S = 10.0


def with_dev_store(settings: Settings, *, make: bool = False) -> Settings:
    """The settings with blobs in the home, where no other place is set and a development server has been started."""
    folder = Path(settings.home) / "temporal-blobs"
    if settings.temporal.blobs is not None or not (make or folder.is_dir()):
        return settings
    private_folder(Path(settings.home))
    private_folder(folder)
    temporal = settings.temporal.model_copy(update={"blobs": folder.as_uri()})
    return settings.model_copy(update={"temporal": temporal})


def open_store(settings: TemporalSettings, environ: Mapping[str, str] | None = None) -> BlobStore:
    """The blob store; UsageError where none is named, or its key is not set."""
    environ = os.environ if environ is None else environ
    if settings.blobs is None:
        raise UsageError(
            'Runs on Temporal need a blob store: set blobs = "file:///FOLDER" or "s3://..." in [temporal].'
        )
    key = None
    if settings.key_env is not None:
        key = environ.get(settings.key_env, "").encode()
        if not key:
            raise UsageError(f"[temporal] key_env names {settings.key_env}, which is not set: set it to encrypt blobs.")
    return BlobStore(settings.blobs, key)


async def connect(settings: TemporalSettings, *, logs: bool = False) -> Client:
    """A client of the server; UsageError says what is wrong with address, TLS or namespace.

    With `logs` the client library writes its warnings to stderr: for a worker, which waits for a server that is away.
    """
    try:
        from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
        from temporalio.client import Client
        from temporalio.service import RPCError, RPCStatusCode
    except ImportError as error:
        raise UsageError(f"Temporal needs {error.name}, which is not installed: {INSTALL}") from None
    try:
        async with asyncio.timeout(_CONNECT_S):
            client = await Client.connect(
                settings.address,
                namespace=settings.namespace,
                tls=_tls(settings),
                runtime=None if logs else _silent_runtime(),
            )
    except (RuntimeError, TimeoutError, OSError) as error:
        raise _no_answer(settings, error) from None
    try:
        asked = DescribeNamespaceRequest(namespace=settings.namespace)
        await client.workflow_service.describe_namespace(asked)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise _no_answer(settings, error) from None
        raise UsageError(
            f"The Temporal server at {settings.address} has no namespace {settings.namespace!r} ({error.message}). "
            "Create it, or correct [temporal] namespace."
        ) from None
    return client


@cache
def _silent_runtime() -> Runtime:
    """One for all clients of a process: it has threads of its own."""
    from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter

    only_errors = LoggingConfig(filter=TelemetryFilter(core_level="ERROR", other_level="ERROR"))
    return Runtime(telemetry=TelemetryConfig(logging=only_errors))


def _tls(settings: TemporalSettings) -> TLSConfig | bool:
    """How the connection is secured; UsageError where a file cannot be read, or one of a pair is missing."""
    from temporalio.service import TLSConfig

    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise UsageError("[temporal] tls_cert and tls_key are needed together: a client certificate and its key.")
    files = {name: getattr(settings, name) for name in ("tls_ca", "tls_cert", "tls_key")}
    if not any(files.values()):
        return settings.tls
    read: dict[str, bytes | None] = {}
    for name, path in files.items():
        try:
            read[name] = None if path is None else Path(path).expanduser().read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"[temporal] {name} names {path}: {reason}. Give the path of a PEM file.") from None
    return TLSConfig(
        server_root_ca_cert=read["tls_ca"], client_cert=read["tls_cert"], client_private_key=read["tls_key"]
    )


_START_ONE = "Start one (`chargehand worker --dev`, or `temporal server start-dev`), or correct [temporal] address."
_CHECK_TLS = "It may want TLS or a client certificate: check tls, tls_cert and tls_key of [temporal], and its address."
# A part of what the client library says -> the reason, and what to do. The first that fits is used.
_REASONS = {
    "ConnectionRefused": ("the connection was refused", _START_ONE),
    "dns error": ("the name of the host is not known", "Correct [temporal] address."),
    "UnknownIssuer": ("its certificate is not trusted here", "Name its authority in [temporal] tls_ca."),
    "NotValidForName": ("its certificate is for another name", "Use that name in [temporal] address."),
    "CertificateRequired": ("it wants a client certificate", "Set [temporal] tls_cert and tls_key."),
    "UnknownCA": ("it does not trust the client certificate", "Set [temporal] tls_cert and tls_key to one it trusts."),
    "KeyMismatch": ("the key is not that of the client certificate", "Correct [temporal] tls_cert and tls_key."),
    "InvalidContentType": ("it does not use TLS", "Remove tls from [temporal], or correct the address."),
    "hyper::Error": ("it closed the connection", _CHECK_TLS),
    "compression flag: 60": ("a web server answers, but does not pass calls on", _CHECK_TLS),
}


def _no_answer(settings: TemporalSettings, error: Exception) -> UsageError:
    said = " ".join(str(error).split())
    other = (said[:200].rstrip(".") or f"no answer within {_CONNECT_S:.0f} seconds", _START_ONE)
    reason, remedy = next((found for mark, found in _REASONS.items() if mark in said), other)
    return UsageError(f"No Temporal server answers at {settings.address}: {reason}. {remedy}")
