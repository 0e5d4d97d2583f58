"""Connections with TLS: certificates of an authority of one's own, on both sides; each mistake has its sentence."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chargehand.errors import UsageError
from chargehand.runs.temporal.connection import connect
from chargehand.settings.settings import TemporalSettings
from tests.engine.temporal.fleet import Server, free_port

pytestmark = pytest.mark.xdist_group("temporal")


class Pair(NamedTuple):
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """Signs certificates for this machine, below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
        self.own = self._write("ca", self._name, self._key, is_authority=True)

    def issue(self, name: str) -> Pair:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        return self._write(name, subject, ec.generate_private_key(ec.SECP256R1()))

    def _write(
        self, file: str, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> Pair:
        now = datetime.now(UTC)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        cert = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self._folder.mkdir(exist_ok=True)
        pair = Pair(self._folder / f"{file}.pem", self._folder / f"{file}.key")
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        pair.cert.write_bytes(cert.public_bytes(pem))
        pair.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        return pair


@asynccontextmanager
async def with_tls(server: Server, own: Pair, trusted: Path) -> AsyncGenerator[str]:
    """An address that passes connections with a client certificate on to the server."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(trusted))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(own.cert, own.key)
    context.set_alpn_protocols(["h2"])

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    passing: set[asyncio.Task[None]] = set()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            await asyncio.gather(copy(reader, outer), copy(inner, writer))
        finally:
            for each in (writer, outer):
                each.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing.add(asyncio.create_task(pass_on(reader, writer)))

    port = free_port()
    async with await asyncio.start_server(begin, "127.0.0.1", port, ssl=context):
        yield f"127.0.0.1:{port}"
        for each in passing:
            each.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


def test_a_server_with_tls_is_reached_with_certificates_alone(server: Server, tmp_path: Path) -> None:
    """With the authority and a client certificate it answers; without either, or with a wrong one, it is said what."""
    authority, stranger = Authority(tmp_path / "own"), Authority(tmp_path / "stranger")
    client, other = authority.issue("client"), stranger.issue("client")
    right = {"tls_ca": authority.own.cert, "tls_cert": client.cert, "tls_key": client.key}
    wrong: list[tuple[dict[str, Path | None], str]] = [
        ({"tls_ca": None}, "tls_ca"),
        ({"tls_ca": stranger.own.cert}, "tls_ca"),
        ({"tls_ca": tmp_path / "none.pem"}, "none.pem"),
        ({"tls_key": None}, "needed together"),
        ({"tls_key": other.key}, "the key is not that of the client certificate"),
        ({"tls_cert": other.cert, "tls_key": other.key}, "tls_cert"),
        ({"tls_cert": None, "tls_key": None}, "tls_cert"),
        ({"tls_ca": None, "tls_cert": None, "tls_key": None}, "check tls"),
    ]

    def settings(address: str, files: dict[str, Path | None]) -> TemporalSettings:
        return TemporalSettings.model_validate(
            {"address": address, **{name: path and str(path) for name, path in files.items()}}
        )

    async def work() -> None:
        await server.connect()
        async with with_tls(server, authority.issue("server"), authority.own.cert) as address:
            assert (await connect(settings(address, {**right}))).namespace == "default"
            for change, said in wrong:
                with pytest.raises(UsageError, match=said):
                    await asyncio.wait_for(connect(settings(address, {**right, **change})), 30)
        with pytest.raises(UsageError, match="does not use TLS"):
            await connect(settings(server.address, {**right}))

    asyncio.run(work())
