"""An Authority issues the certificates that the proxies show, one after the other, and expired ones."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl
import tempfile
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from chaos.preload import NAME

#: Before and after the present: operators' clocks are stepped by an hour.
VALID = dt.timedelta(days=1)


def named(name: str) -> x509.Name:
    """A subject."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """Signs for loopback and :data:`NAME`.

    Attributes:
        certificate: Of the authority, PEM; clients trust it all the time.
        context: Of all proxies; what is issued is shown on new connections.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = named("plimsoll-chaos authority")
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
        built = (
            self._built(subject, self._key.public_key(), VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        )
        self.certificate = built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.issue()

    def issue(self, until: dt.timedelta = VALID) -> None:
        """Show another certificate from now on, which is valid until so long after now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName(NAME)]
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        built = (
            self._built(named("kube-apiserver"), key.public_key(), until)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(signer, critical=False)
        )
        content = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        content += built.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        with tempfile.TemporaryDirectory(prefix="plimsoll-chaos-") as folder:
            file = Path(folder) / "server.pem"
            file.write_bytes(content)
            self.context.load_cert_chain(file)

    @staticmethod
    def _built(
        subject: x509.Name, key: ec.EllipticCurvePublicKey, until: dt.timedelta
    ) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder(named("plimsoll-chaos authority"), subject, key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - VALID)
            .not_valid_after(now + until)
        )
