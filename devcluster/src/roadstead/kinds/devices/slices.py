"""Sets defaults of ResourceSlices and checks them: pools of devices, and their counters.

Source: Kubernetes v1.36 ``pkg/apis/resource/validation/validation.go``,
``pkg/registry/resource/resourceslice/strategy.go``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    immutable,
    invalid,
    label_name,
    one_of,
    required,
    subdomain_name,
    too_long,
    too_many,
)
from roadstead.kinds.devices.capacities import capacity_causes
from roadstead.kinds.devices.claim_statuses import binding_causes
from roadstead.kinds.devices.names import (
    EFFECTS,
    attribute_name,
    driver_name,
    each,
    label_key,
    label_value,
    pool_name,
    repeated,
)
from roadstead.kinds.kind import Kind
from roadstead.kinds.podspec.placement import node_selector_causes

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

MOST_DEVICES = 128
MOST_SPECIAL_DEVICES = 64
"""With taints, or with counters."""
_MOST_FIELDS = 32
_MOST_TAINTS = 16
_MOST_SETS, _MOST_COUNTERS, _MOST_SETS_OF_DEVICE = 8, 32, 2
_LONGEST_VALUE = 64
_VALUES = ("bool", "int", "string", "version")
#: Attributes and mappings of alpha features, dropped while these are off.
_OFF = ("bools", "ints", "strings", "versions")

_NUMBER = r"(0|[1-9]\d*)"
_BEFORE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE}(\.{_BEFORE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)


class ResourceSlices(Kind):
    """Slices of pools of devices.

    Args:
        now: the time in the form of metadata.
    """

    counts_generation = True
    returns_deleted = True

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now

    def default(self, obj: Obj) -> None:
        """Set the times of taints and the pool's numbers, and drop fields of disabled features."""
        spec = obj.setdefault("spec", {})
        pool = spec.setdefault("pool", {})
        for field in ("generation", "resourceSliceCount"):
            pool.setdefault(field, 0)
        for device in spec.get("devices") or ():
            device.pop("nodeAllocatableResourceMappings", None)
            for attribute in (device.get("attributes") or {}).values():
                for field in _OFF:
                    attribute.pop(field, None)
            for taint in device.get("taints") or ():
                if not taint.get("timeAdded"):
                    taint["timeAdded"] = self._now()
            for capacity in (device.get("capacity") or {}).values():
                capacity.setdefault("value", "0")
                if "requestPolicy" in capacity:
                    capacity["requestPolicy"].setdefault("default", None)
        counted = [*(spec.get("sharedCounters") or ())]
        counted += [
            one for device in spec.get("devices") or () for one in device.get("consumesCounters") or ()
        ]
        for holder in counted:
            for counter in (holder.get("counters") or {}).values():
                counter.setdefault("value", "0")

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new slice."""
        return slice_causes(obj["spec"], "spec")

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Driver, pool and node cannot change."""
        after, before = new["spec"], old["spec"]
        causes = slice_causes(after, "spec")
        causes += immutable("spec.pool.name", after["pool"].get("name"), before["pool"].get("name"))
        for field in ("driver", "nodeName"):
            causes += immutable(f"spec.{field}", after.get(field), before.get(field))
        return causes

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset(("spec.nodeName", "spec.driver"))

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors."""
        spec = obj["spec"]
        return {"spec.nodeName": spec.get("nodeName", ""), "spec.driver": spec.get("driver", "")}


def slice_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of a slice's spec."""
    causes = driver_name(f"{at}.driver", spec.get("driver", "")) + _pool_causes(spec["pool"], f"{at}.pool")
    causes += _where_causes(spec, at)
    devices, sets = spec.get("devices"), spec.get("sharedCounters")
    if devices and sets:
        causes.append(invalid(at, "", "only one of `sharedCounters` or `devices` is allowed"))
    special = any(one.get("taints") or one.get("consumesCounters") for one in devices or ())
    most = MOST_SPECIAL_DEVICES if special else MOST_DEVICES
    by_device = bool(spec.get("perDeviceNodeSelection"))
    causes += each(
        devices or [],
        f"{at}.devices",
        most,
        lambda one, here: _device_causes(one, here, by_device=by_device),
    )
    causes += repeated((one.get("name", "") for one in devices or ()), f"{at}.devices", most)
    here = f"{at}.sharedCounters"
    causes += each(sets or [], here, _MOST_SETS, lambda one, path: _set_causes(one, path, "name"))
    return causes + repeated((one.get("name", "") for one in sets or ()), here, _MOST_SETS)


def _pool_causes(pool: Obj, at: str) -> list[Cause]:
    causes = pool_name(f"{at}.name", pool.get("name", ""))
    if pool["resourceSliceCount"] <= 0:
        causes.append(
            invalid(f"{at}.resourceSliceCount", pool["resourceSliceCount"], "must be greater than zero")
        )
    if pool["generation"] < 0:
        message = "must be greater than or equal to zero"
        causes.append(invalid(f"{at}.generation", pool["generation"], message))
    return causes


def _where_causes(spec: Obj, at: str) -> list[Cause]:
    """Faults of the nodes for which a slice is."""
    causes: list[Cause] = []
    given: list[str] = []
    node = spec.get("nodeName")
    if node:
        given.append("`nodeName`")
        causes += subdomain_name(f"{at}.nodeName", node)
    elif node is not None:
        message = "must be either unset or set to a non-empty string"
        causes.append(invalid(f"{at}.nodeName", node, message))
    selector = spec.get("nodeSelector")
    if selector is not None:
        given.append("`nodeSelector`")
        causes += node_selector_causes(selector, f"{at}.nodeSelector")
        terms = selector.get("nodeSelectorTerms") or []
        if len(terms) != 1:
            here = f"{at}.nodeSelector.nodeSelectorTerms"
            causes.append(invalid(here, terms, "must have exactly one node selector term"))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            given.append(f"`{field}`")
        elif field in spec:
            causes.append(invalid(f"{at}.{field}", value=False, detail="must be either unset or set to true"))
    rule = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not given:
        causes.append(required(at, rule))
    elif len(given) > 1:
        causes.append(invalid(at, f"{{{', '.join(given)}}}", f"{rule}, but multiple fields are set"))
    return causes


def _device_causes(device: Obj, at: str, *, by_device: bool) -> list[Cause]:
    causes = label_name(f"{at}.name", device.get("name", ""))
    attributes, capacities = device.get("attributes") or {}, device.get("capacity") or {}
    count = len(attributes) + len(capacities)
    if count > _MOST_FIELDS:
        message = f"the total number of attributes and capacities must not exceed {_MOST_FIELDS}"
        causes.append(invalid(at, count, message))
    for name, attribute in attributes.items():
        causes += attribute_name(f"{at}.attributes", name)
        causes += _attribute_causes(attribute, f"{at}.attributes[{name}]")
    shared = bool(device.get("allowMultipleAllocations"))
    causes += capacity_causes(capacities, f"{at}.capacity", shared=shared)
    causes += each(device.get("taints") or [], f"{at}.taints", _MOST_TAINTS, _taint_causes)
    consumed, here = device.get("consumesCounters") or [], f"{at}.consumesCounters"
    causes += each(
        consumed, here, _MOST_SETS_OF_DEVICE, lambda one, path: _set_causes(one, path, "counterSet")
    )
    causes += repeated((one.get("counterSet", "") for one in consumed), here, _MOST_SETS_OF_DEVICE)
    return causes + _device_node_causes(device, at, by_device=by_device) + binding_causes(device, at)


def _attribute_causes(attribute: Obj, at: str) -> list[Cause]:
    given = [kind for kind in _VALUES if attribute.get(kind) is not None]
    causes: list[Cause] = []
    for kind in ("string", "version"):
        text, here = attribute.get(kind), f"{at}.{kind}"
        if text is None:
            continue
        if kind == "version" and not _VERSION.fullmatch(text):
            causes.append(invalid(here, text, "must be a string compatible with semver.org spec 2.0.0"))
        if len(text.encode()) > _LONGEST_VALUE:
            causes.append(too_long(here, _LONGEST_VALUE))
    if len(given) != 1:
        causes.append(invalid(at, attribute or "", "exactly one value must be specified"))
    return causes


def _taint_causes(taint: Obj, at: str) -> list[Cause]:
    causes = label_key(f"{at}.key", taint.get("key", ""))
    if taint.get("value"):
        causes += label_value(f"{at}.value", taint["value"])
    effect = taint.get("effect")
    return causes + (one_of(f"{at}.effect", effect, EFFECTS) if effect else [required(f"{at}.effect")])


def _set_causes(counters: Obj, at: str, name: str) -> list[Cause]:
    """Faults of a set of counters, or of a device's consumption of one."""
    given = counters.get(name, "")
    causes = label_name(f"{at}.{name}", given) if given else [required(f"{at}.{name}")]
    listed, here = counters.get("counters") or {}, f"{at}.counters"
    if not listed:
        return [*causes, required(here)]
    if len(listed) > _MOST_COUNTERS:
        return [*causes, too_many(here, len(listed), _MOST_COUNTERS)]
    return causes + [cause for key in listed for cause in label_name(here, key)]


def _device_node_causes(device: Obj, at: str, *, by_device: bool) -> list[Cause]:
    """Faults of the nodes that a device names itself."""
    fields = ("nodeName", "nodeSelector", "allNodes")
    given = [field for field in fields if device.get(field) is not None]
    if not by_device:
        if not given:
            return []
        message = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to "
            "true in the ResourceSlice spec"
        )
        return [invalid(at, None, message)]
    causes: list[Cause] = []
    if device.get("nodeName"):
        causes += subdomain_name(f"{at}.nodeName", device["nodeName"])
    elif "nodeName" in given:
        causes.append(invalid(f"{at}.nodeName", "", "must not be empty"))
        given.remove("nodeName")
    if "nodeSelector" in given:
        causes += node_selector_causes(device["nodeSelector"], f"{at}.nodeSelector")
    if "allNodes" in given and not device["allNodes"]:
        causes.append(invalid(f"{at}.allNodes", value=False, detail="must be either unset or set to true"))
        given.remove("allNodes")
    rule = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` "
        "is set to true in the ResourceSlice spec"
    )
    if not given:
        causes.append(required(at, rule))
    elif len(given) > 1:
        listed = ", ".join(f"`{field}`" for field in given)
        causes.append(invalid(at, f"{{{listed}}}", rule))
    return causes
