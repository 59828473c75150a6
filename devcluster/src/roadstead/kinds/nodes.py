"""Sets defaults of Nodes and checks them.

Source: Kubernetes v1.36 ``pkg/registry/core/node``, ``pkg/apis/core/validation``: ``ValidateNode``.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import duplicate, forbidden, invalid, one_of, quoted, required
from roadstead.kinds.checks.metadata import label_value_faults, qualified_name_faults
from roadstead.kinds.kind import StatusKind
from roadstead.kinds.podspec.placement import EFFECTS
from roadstead.kinds.podspec.resources import amount_causes
from roadstead.values.status_errors import Cause

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

_SYSTEM_FIELDS = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
_SET_ONCE = 'node updates may not change {} except from "" to valid'


class Nodes(StatusKind):
    """Nodes; a kubelet creates one together with its status."""

    counts_generation = False

    def default(self, obj: Obj) -> None:
        """Allocatable defaults to capacity; some fields are always present."""
        spec = obj.setdefault("spec", {})
        spec.pop("configSource", None)
        if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
            spec["podCIDRs"] = [spec["podCIDR"]]
        elif spec.get("podCIDRs"):
            spec["podCIDR"] = spec["podCIDRs"][0]
        status = obj.setdefault("status", {})
        status.pop("config", None)
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {}).setdefault("Port", 0)
        info = status.setdefault("nodeInfo", {})
        for field in _SYSTEM_FIELDS:
            info.setdefault(field, "")
        for kind, fields in (("conditions", ("type", "status")), ("addresses", ("type", "address"))):
            for one in status.get(kind) or ():
                for field in fields:
                    one.setdefault(field, "")

    def prepare_create(self, obj: Obj) -> None:
        """Keep the status that the kubelet sent."""

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of taints, amounts and address ranges."""
        causes = _taint_causes(obj["spec"].get("taints") or []) + _resource_causes(obj)
        ranges = obj["spec"].get("podCIDRs") or []
        causes += [
            invalid(f"spec.podCIDRs[{index}]", one, _NO_RANGE)
            for index, one in enumerate(ranges)
            if not _family(one)
        ]
        if len(ranges) > 1 and (len(ranges) > 2 or {_family(one) for one in ranges} != {4, 6}):
            causes.append(
                invalid("spec.podCIDRs", ranges, "may specify no more than one CIDR for each IP family")
            )
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Address ranges and the provider ID can be set once."""
        causes = self.validate_create(new)
        seen: list[Obj] = []
        for index, address in enumerate((new.get("status") or {}).get("addresses") or ()):
            if address in seen:
                shown = {"Type": address["type"], "Address": address["address"]}
                causes.append(duplicate(f"status.addresses[{index}]", shown))
            seen.append(address)
        if old["spec"].get("podCIDRs") and new["spec"].get("podCIDRs") != old["spec"]["podCIDRs"]:
            causes.append(forbidden("spec.podCIDRs", _SET_ONCE.format("podCIDR")))
        if old["spec"].get("providerID") and new["spec"].get("providerID") != old["spec"]["providerID"]:
            causes.append(forbidden("spec.providerID", _SET_ONCE.format("providerID")))
        return causes

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """As an update."""
        return self.validate_update(new, old)

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("spec.unschedulable",))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


_NO_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _family(text: str) -> int:
    """4 or 6 for a range of addresses, 0 for anything else."""
    try:
        return ipaddress.ip_network(text, strict=False).version if "/" in text else 0
    except ValueError:
        return 0


def _resource_causes(node: Obj) -> list[Cause]:
    status = node.get("status") or {}
    return [
        cause
        for kind in ("capacity", "allocatable")
        for name, text in (status.get(kind) or {}).items()
        for cause in amount_causes(name, text, f"status.{kind}.{name}")
    ]


def _taint_causes(taints: list[Obj]) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        at = f"metadata.taints[{index}]"  # as upstream, the path says metadata instead of spec
        key, effect = taint.get("key", ""), taint.get("effect", "")
        causes += [invalid(f"{at}.key", key, fault) for fault in qualified_name_faults(key)]
        if faults := label_value_faults(taint.get("value", "")):
            causes.append(invalid(f"{at}.value", taint["value"], ";".join(faults)))
        causes += one_of(f"{at}.effect", effect, EFFECTS) if effect else [required(f"{at}.effect")]
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
            unique = "taints must be unique by key and effect pair"
            causes.append(Cause(at, f"Duplicate value: {quoted(shown)}: {unique}", "FieldValueDuplicate"))
        seen.add((key, effect))
    return causes
