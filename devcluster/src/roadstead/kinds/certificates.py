"""Checks CertificateSigningRequests and completes them by who asks.

Source: Kubernetes v1.36 ``pkg/apis/certificates/validation``, ``pkg/registry/certificates``.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import immutable, invalid, required
from roadstead.kinds.kind import StatusKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_BEGIN = b"-----BEGIN CERTIFICATE REQUEST-----"
_SHORTEST_S = 600


class CertificateSigningRequests(StatusKind):
    """CertificateSigningRequests.

    Args:
        now: the time in the form of metadata.
    """

    counts_generation = False

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now

    def note_sender(self, obj: Obj, user: Obj) -> None:
        """The server says who asks."""
        spec = obj.setdefault("spec", {})
        for name in ("username", "groups", "uid", "extra"):
            spec.pop(name, None)
            if user.get(name):
                spec[name] = user[name]

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of the request, the usages and the signer."""
        spec = obj["spec"]
        causes: list[Cause] = []
        try:
            pem = base64.b64decode(spec.get("request", ""), validate=True)
        except binascii.Error:
            pem = b""
        if not pem.strip().startswith(_BEGIN):
            message = "PEM block type must be CERTIFICATE REQUEST"
            causes.append(invalid("spec.request", spec.get("request", ""), message))
        if not spec.get("usages"):
            causes.append(required("spec.usages"))
        signer = spec.get("signerName", "")
        domain, slash, rest = signer.partition("/")
        if not signer:
            causes.append(required("spec.signerName"))
        elif not (slash and rest and "." in domain):
            message = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
            causes.append(invalid("spec.signerName", signer, message))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < _SHORTEST_S:
            message = "may not specify a duration less than 600 seconds (10 minutes)"
            causes.append(invalid("spec.expirationSeconds", seconds, message))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The spec cannot change."""
        return immutable("spec", new["spec"], old["spec"])

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """New conditions get times."""
        super().prepare_status(new, old)
        known = {one["type"] for one in (old.get("status") or {}).get("conditions") or ()}
        for condition in (new.get("status") or {}).get("conditions") or ():
            condition.setdefault("lastUpdateTime", self._now())
            if condition["type"] not in known:
                condition.setdefault("lastTransitionTime", self._now())
