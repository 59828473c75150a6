"""Certificate authorities and HTTP(S) servers on loopback, for adapters that speak to other servers."""

import base64
import datetime as dt
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Any

from aiohttp import web
from aiohttp.web_request import Request
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import Certificate
from cryptography.x509.name import Name
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority for one test."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = self._named("authority")
        self.certificate = self._signed(self._name, self._key, is_authority=True)
        self.pem = self.certificate.public_bytes(serialization.Encoding.PEM)

    @staticmethod
    def _named(name: str) -> Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def _signed(self, name: Any, key: Any, *, host: str = "", is_authority: bool = False) -> Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder(self._name, name, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if is_authority:
            others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
            usage = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
            signs = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, **usage)
            builder = builder.add_extension(signs, critical=True)
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def issue(self, host: str, password: Any = None) -> tuple[bytes, ...]:
        """Certificate and key for a host, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(self._named(host), key, host=host)
        how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return (
            certificate.public_bytes(serialization.Encoding.PEM),
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how),
        )


def coded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


@asynccontextmanager
async def served(handler: Callable[..., Any], context: SSLContext | None = None) -> AsyncIterator[Any]:
    """A server on loopback; its port, and the requests that it received."""
    asked = []

    async def handle(request: Request) -> Any:
        asked.append((request.method, request.path, await request.read(), request.headers))
        return await handler(request)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield runner.addresses[0][1], asked
    finally:
        await runner.cleanup()


def load(context: SSLContext, certificate: bytes, key: bytes) -> None:
    """The library reads files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + key)
        file.flush()
        context.load_cert_chain(file.name)
