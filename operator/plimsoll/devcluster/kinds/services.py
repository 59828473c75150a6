"""Services and Leases.

Source: Kubernetes v1.36 ``pkg/registry/core/service``, ``pkg/registry/coordination/lease``.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import TYPE_CHECKING

from plimsoll.devcluster.kinds.checks import immutable, invalid, one_of, required
from plimsoll.devcluster.kinds.kind import Kind, StatusKind
from plimsoll.devcluster.kinds.metadata import service_name_faults

if TYPE_CHECKING:
    from plimsoll.devcluster.api import Api
    from plimsoll.devcluster.resources import Obj
    from plimsoll.devcluster.statuses import Cause

#: Where cluster addresses come from: a range for documentation, in which nothing listens.
_ADDRESSES = ipaddress.ip_network("198.18.0.0/16")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


class Services(StatusKind):
    """Services: they get an address, and nothing listens there."""

    counts_generation = False
    returns_deleted = True

    def __init__(self) -> None:
        self._turns = itertools.count(1)

    def name_faults(self, name: str) -> list[str]:
        """A DNS label that begins with a letter."""
        return service_name_faults(name)

    def default(self, obj: Obj) -> None:
        """Fill in what was left out."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        spec.setdefault("sessionAffinity", "None")
        spec.setdefault("internalTrafficPolicy", "Cluster")
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            port.setdefault("targetPort", port.get("port"))

    def prepare_create(self, obj: Obj) -> None:
        """No load balancer yet."""
        obj["status"] = {"loadBalancer": {}}

    def admit_create(self, obj: Obj, api: Api) -> None:
        """An address, unless there is to be none."""
        del api
        spec = obj["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = str(_ADDRESSES[next(self._turns) % (_ADDRESSES.num_addresses - 2) + 1])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """The address is kept."""
        super().prepare_update(new, old)
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field not in new["spec"] and field in old["spec"]:
                new["spec"][field] = old["spec"][field]

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Ports are needed where there is an address."""
        spec = obj["spec"]
        causes = one_of("spec.type", spec["type"], _TYPES)
        headless = spec.get("clusterIP") == "None"
        if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
            causes.append(required("spec.ports"))
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("port", 0)
            if not 0 < number < 65536:
                causes.append(
                    invalid(f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive")
                )
            if len(spec["ports"]) > 1 and not port.get("name"):
                causes.append(required(f"spec.ports[{index}].name"))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The address stays."""
        causes = self.validate_create(new)
        if new["spec"]["type"] != "ExternalName" and old["spec"].get("clusterIP"):
            causes += immutable("spec.clusterIPs[0]", new["spec"].get("clusterIP"), old["spec"]["clusterIP"])
        return causes

    def field_labels(self) -> frozenset[str]:
        """As upstream."""
        return frozenset(("spec.clusterIP", "spec.type"))

    def fields(self, obj: Obj) -> dict[str, str]:
        """As upstream."""
        return {"spec.clusterIP": obj["spec"].get("clusterIP", ""), "spec.type": obj["spec"].get("type", "")}


class Leases(Kind):
    """Leases: never overwritten without a version."""

    creates_on_update = True
    unconditional_update = False

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Durations are positive, transitions not negative."""
        spec = obj.get("spec") or {}
        causes = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            causes.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            told = "must be greater than or equal to 0"
            causes.append(invalid("spec.leaseTransitions", transitions, told))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)
