"""Reads leases: holder, renewal, and the pod that holds one."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from plimsoll.ports.leases import Lease

#: Maximum length of a holder in characters: twice the maximum of a pod's name.
LONGEST_HOLDER = 512

#: Leases by namespace and name.
Leases = Mapping[tuple[str, str], Lease]


def lease_of(document: Mapping[str, Any]) -> Lease:
    """A Lease from the API's document; malformed fields count as absent."""
    spec = document.get("spec") or {}
    return Lease(
        holder=str(spec.get("holderIdentity") or "")[:LONGEST_HOLDER],
        duration_s=int(spec.get("leaseDurationSeconds") or 0),
        acquired=_seconds(spec.get("acquireTime")),
        renewed=_seconds(spec.get("renewTime")),
        transitions=int(spec.get("leaseTransitions") or 0),
        metadata=document.get("metadata") or {},
    )


def _seconds(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def is_renewed(lease: Lease, now: float) -> bool:
    """Whether a lease is held and its holder renews it, according to this machine's clock."""
    return bool(lease.holder) and now < lease.renewed + lease.duration_s


def pod_of(holder: str) -> str:
    """The pod (or host) with which a holder's identity begins."""
    return holder.rpartition("_")[0] or holder
