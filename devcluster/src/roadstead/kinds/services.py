"""Sets defaults of Services and Leases and checks them.

Source: Kubernetes v1.36 ``pkg/registry/core/service``, ``pkg/registry/coordination/lease``.
"""

from __future__ import annotations

import ipaddress
import itertools
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    immutable,
    invalid,
    label_name,
    one_of,
    port_number,
    required,
    subdomain_name,
)
from roadstead.kinds.checks.metadata import label_causes, label_faults, qualified_name_faults
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.kinds.podspec.probes import port_causes

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

#: The range of cluster addresses: one reserved for documentation, in which nothing listens.
_ADDRESSES = ipaddress.ip_network("198.18.0.0/16")
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_WITH_ADDRESS = ("ClusterIP", "LoadBalancer", "NodePort")
_AFFINITY_SECONDS, _LONGEST_AFFINITY = 10_800, 86_400
_ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'"


def _is_reached_from_outside(spec: Obj) -> bool:
    return spec["type"] in ("LoadBalancer", "NodePort") or bool(
        spec["type"] == "ClusterIP" and spec.get("externalIPs")
    )


def spec_causes(spec: Obj) -> list[Cause]:
    """Faults of a service's spec, except for its addresses."""
    causes = one_of("spec.type", spec["type"], _TYPES)
    headless = spec.get("clusterIP") == "None"
    ports = spec.get("ports") or []
    if not ports and not headless and spec["type"] != "ExternalName":
        causes.append(required("spec.ports"))
    if headless and spec["type"] in ("LoadBalancer", "NodePort"):
        message = f"may not be set to 'None' for {spec['type']} services"
        causes.append(invalid("spec.clusterIPs[0]", "None", message))
    if spec["type"] == "ExternalName":
        causes += _external_causes(spec)
    causes += _port_causes(ports, plain=spec["type"] == "ClusterIP")
    causes += label_causes(spec.get("selector"), "spec.selector")
    causes += one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if spec["sessionAffinity"] == "ClientIP":
        seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"]
        if not 0 < seconds <= _LONGEST_AFFINITY:
            message = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            causes.append(invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, message))
    if spec["type"] != "LoadBalancer":
        causes += [
            forbidden(f"spec.{shown}", _ONLY_BALANCED)
            for field, shown in (
                ("loadBalancerSourceRanges", "LoadBalancerSourceRanges"),
                ("allocateLoadBalancerNodePorts", "allocateLoadBalancerNodePorts"),
                ("loadBalancerClass", "loadBalancerClass"),
            )
            if spec.get(field) not in (None, [])
        ]
    return causes + _traffic_causes(spec)


def _external_causes(spec: Obj) -> list[Cause]:
    causes = [
        forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field) or (field == "clusterIPs" and spec.get("clusterIP"))
    ]
    name = spec.get("externalName", "").removesuffix(".")
    return causes + (subdomain_name("spec.externalName", name) if name else [required("spec.externalName")])


def _port_causes(ports: list[Obj], *, plain: bool) -> list[Cause]:
    causes: list[Cause] = []
    names: set[str] = set()
    taken: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        at, name, number = f"spec.ports[{index}]", port.get("name", ""), port.get("port", 0)
        if name:
            causes += label_name(f"{at}.name", name)
            if name in names:
                causes.append(duplicate(f"{at}.name", name))
            names.add(name)
        elif len(ports) > 1:
            causes.append(required(f"{at}.name"))
        causes += port_number(f"{at}.port", number)
        causes += one_of(f"{at}.protocol", port["protocol"], ("SCTP", "TCP", "UDP"))
        causes += port_causes(port["targetPort"], f"{at}.targetPort")
        if "appProtocol" in port:
            application = port["appProtocol"]
            faults = qualified_name_faults(application)
            causes += [invalid(f"{at}.appProtocol", application, fault) for fault in faults]
        if plain and port.get("nodePort"):
            causes.append(forbidden(f"{at}.nodePort", "may not be used when `type` is 'ClusterIP'"))
        if (port["protocol"], number) in taken:
            shown = {"Name": "", "Protocol": port["protocol"], "AppProtocol": None, "Port": number}
            causes.append(duplicate(at, {**shown, "TargetPort": 0, "NodePort": 0}))
        taken.add((port["protocol"], number))
    return causes


def _traffic_causes(spec: Obj) -> list[Cause]:
    causes: list[Cause] = []
    policies = ("Cluster", "Local")
    outside, at = spec.get("externalTrafficPolicy"), "spec.externalTrafficPolicy"
    if outside and not _is_reached_from_outside(spec):
        causes.append(invalid(at, outside, "may only be set for externally-accessible services"))
    elif outside:
        causes += one_of(at, outside, policies)
    if spec.get("healthCheckNodePort") and (spec["type"] != "LoadBalancer" or outside != "Local"):
        message = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        causes.append(invalid("spec.healthCheckNodePort", spec["healthCheckNodePort"], message))
    if "internalTrafficPolicy" in spec:
        causes += one_of("spec.internalTrafficPolicy", spec["internalTrafficPolicy"], policies)
    if "trafficDistribution" in spec:
        words = ("PreferClose", "PreferSameZone", "PreferSameNode")
        causes += one_of("spec.trafficDistribution", spec["trafficDistribution"], words)
    return causes


class Services(StatusKind):
    """Services; each gets an address on which nothing listens."""

    counts_generation = False
    returns_deleted = True

    def __init__(self) -> None:
        self._turns = itertools.count(1)

    def name_faults(self, name: str) -> list[str]:
        """A DNS label."""
        return label_faults(name)

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "ClusterIP")
        if spec.setdefault("sessionAffinity", "None") == "ClientIP":
            client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
            client.setdefault("timeoutSeconds", _AFFINITY_SECONDS)
        elif spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        if spec["type"] in _WITH_ADDRESS:
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if _is_reached_from_outside(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if spec["type"] == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
        for port in spec.get("ports") or ():
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)

    def prepare_create(self, obj: Obj) -> None:
        """A new service has no load balancer."""
        obj["status"] = {"loadBalancer": {}}

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Assign an address, unless the service is headless or external."""
        del objects
        spec = obj["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            spec["clusterIP"] = str(_ADDRESSES[next(self._turns) % (_ADDRESSES.num_addresses - 2) + 1])
        spec["clusterIPs"] = [spec["clusterIP"]]
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """The load balancer's status is always present, possibly empty."""
        super().prepare_status(new, old)
        new.setdefault("status", {}).setdefault("loadBalancer", {})

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Keep the address."""
        super().prepare_update(new, old)
        for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            if field not in new["spec"] and field in old["spec"]:
                new["spec"][field] = old["spec"][field]

    def validate_create(self, obj: Obj) -> list[Cause]:
        """A service with an address needs ports."""
        return spec_causes(obj["spec"])

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The address cannot change."""
        causes = self.validate_create(new)
        if new["spec"]["type"] != "ExternalName" and old["spec"].get("clusterIP"):
            causes += immutable("spec.clusterIPs[0]", new["spec"].get("clusterIP"), old["spec"]["clusterIP"])
        return causes

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("spec.clusterIP", "spec.type"))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"spec.clusterIP": obj["spec"].get("clusterIP", ""), "spec.type": obj["spec"].get("type", "")}


class Leases(Kind):
    """Leases; an update needs a resourceVersion."""

    creates_on_update = True
    unconditional_update = False
    qualified_finalizers = False

    def default(self, obj: Obj) -> None:
        """Drop fields of disabled feature gates."""
        spec = obj.setdefault("spec", {})
        spec.pop("strategy", None)
        spec.pop("preferredHolder", None)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Durations are positive, transitions not negative."""
        spec = obj.get("spec") or {}
        causes = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            causes.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            message = "must be greater than or equal to 0"
            causes.append(invalid("spec.leaseTransitions", transitions, message))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)
