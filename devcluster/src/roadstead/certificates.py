"""Makes a certificate for loopback when the cluster starts.

kubectl sends bearer tokens only over TLS, so the cluster has its own certificate, which its kubeconfig
names as the authority.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Identity:
    """A server's certificate, self-signed, and its TLS context.

    Attributes:
        certificate: PEM.
        context: the TLS context of the server.
    """

    certificate: bytes
    context: ssl.SSLContext


Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def loopback_identity(key: Key | None = None, *, names: Sequence[str] = ()) -> Identity:
    """As ``write_certificate``, but the key is not stored."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory(prefix="roadstead-") as folder:
        pem = write_certificate(Path(folder), key, names=names)
        context.load_cert_chain(Path(folder) / "tls.crt", Path(folder) / "tls.key")
    return Identity(pem, context)


def write_certificate(folder: Path, key: Key | None = None, *, names: Sequence[str] = ()) -> bytes:
    """Write a self-signed certificate for 127.0.0.1 and localhost, as servers of webhooks need one.

    Args:
        folder: where ``tls.crt`` and ``tls.key`` are written.
        key: the key, by default a new one.
        names: further names, such as "webhook.default.svc".

    Returns:
        the certificate, PEM, which is also its authority.
    """
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roadstead")])
    now = dt.datetime.now(dt.UTC)
    addresses = [
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        *map(x509.DNSName, ("localhost", *names)),
    ]
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    (folder / "tls.crt").write_bytes(pem)
    secret = folder / "tls.key"
    secret.touch(mode=0o600)
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem
