"""Signs approved CertificateSigningRequests of the signers of Kubernetes.

Each start has an authority of its own. The API server does not accept its certificates as identities.

Source: kubernetes v1.36 ``pkg/controller/certificates/signer``.
"""

from __future__ import annotations

import base64
import datetime as dt
from functools import cached_property
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from roadstead.controllers.pod_state import has_condition

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE = "certificatesigningrequests.certificates.k8s.io"
SIGNERS = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "kubernetes.io/legacy-unknown",
)
LONGEST_S = 365 * 24 * 3600
_EXTENDED = {
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
}
_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "roadstead")])


class CertificateSigner:
    """Signs what was approved."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def _key(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    def start(self) -> None:
        """Subscribe to requests."""
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, name: str) -> None:
        """Sign an approved request that has no certificate."""
        request = self._context.find(RESOURCE, name)
        if request is None or request["spec"]["signerName"] not in SIGNERS:
            return
        status = request.get("status") or {}
        if status.get("certificate") or has_condition(request, "Failed"):
            return
        if has_condition(request, "Approved"):
            certificate = base64.b64encode(self._signed(request["spec"])).decode()
            self._context.write_status(RESOURCE, request, {**status, "certificate": certificate})

    def _signed(self, spec: Obj) -> bytes:
        """The certificate, PEM."""
        asked = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        now = dt.datetime.fromtimestamp(self._context.now, dt.UTC)
        valid_s = min(spec.get("expirationSeconds", LONGEST_S), LONGEST_S)
        builder = (
            x509.CertificateBuilder(_NAME, asked.subject, asked.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(seconds=valid_s))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        )
        if extended := [_EXTENDED[one] for one in spec["usages"] if one in _EXTENDED]:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        for extension in asked.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=extension.critical)
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)
