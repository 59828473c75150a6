"""Checks the status of claims: allocated devices, and the pods for which they are reserved.

Source: Kubernetes v1.36 ``pkg/apis/resource/validation/validation.go`` (ValidateResourceClaimStatusUpdate),
``pkg/registry/resource/resourceclaim/strategy.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    duplicate,
    forbidden,
    immutable,
    invalid,
    label_name,
    one_of,
    required,
    too_long,
    too_many,
)
from roadstead.kinds.checks.reports import conditions_causes, interface_address
from roadstead.kinds.devices.claim_specs import (
    MOST,
    configuration_causes,
    default_tolerations,
    raw_causes,
)
from roadstead.kinds.devices.names import (
    Requests,
    driver_name,
    each,
    label_key,
    pool_name,
    repeated,
    request_names,
    request_reference,
    request_references,
    share_uid,
)
from roadstead.kinds.podspec.placement import node_selector_causes

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

MOST_CONSUMERS = 256
MOST_CONDITIONS = 4
_MOST_REPORTED_CONDITIONS = 8
_MOST_ADDRESSES = 16
_LONGEST = {"interfaceName": 256, "hardwareAddress": 128}
_SOURCES = ("FromClaim", "FromClass")
_IN_USE = "may not be specified when `allocated` is not set"
_GOING = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"

Device = tuple[str, str, str]


def device_of(holder: Obj) -> Device:
    """Driver, pool and device that a result or a report names."""
    return (holder.get("driver", ""), holder.get("pool", ""), holder.get("device", ""))


def _results(status: Obj) -> list[Obj]:
    allocation = status.get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def default_status(status: Obj) -> None:
    """Set defaults of allocations and reports."""
    allocation = status.get("allocation")
    if allocation is not None:
        allocation.setdefault("devices", {})
    for result in _results(status):
        default_tolerations(result)
    for report in status.get("devices") or ():
        report.setdefault("conditions", None)
        for condition in report["conditions"] or ():
            condition.setdefault("message", "")


def drop_reports(status: Obj, before: Obj) -> None:
    """Remove drivers' reports about devices that are no longer allocated."""
    gone = set(map(device_of, _results(before))) - set(map(device_of, _results(status)))
    kept = [one for one in status.get("devices") or () if device_of(one) not in gone]
    if kept:
        status["devices"] = kept
    else:
        status.pop("devices", None)


def claim_status_causes(new: Obj, old: Obj) -> list[Cause]:
    """Faults of a change of a claim's status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    allocation, was = status.get("allocation"), before.get("allocation")
    consumers = status.get("reservedFor") or []
    here = "status.reservedFor"
    causes = each(consumers, here, MOST_CONSUMERS, _consumer_causes)
    causes += repeated((one.get("uid", "") for one in consumers), here, MOST_CONSUMERS)
    causes += _reports_causes(status, "status.devices")
    if consumers and allocation is None:
        causes.append(forbidden(here, _IN_USE))
    elif new["metadata"].get("deletionTimestamp"):
        known = before.get("reservedFor") or []
        if any(one not in known for one in consumers):
            causes.append(forbidden(here, _GOING))
    if allocation is not None and was is not None:
        return causes + immutable("status.allocation", allocation, was)
    if allocation is not None:
        known_requests = request_names(new["spec"]["devices"])
        causes += _allocation_causes(allocation, "status.allocation", known_requests)
    return causes


def _consumer_causes(consumer: Obj, at: str) -> list[Cause]:
    return [required(f"{at}.{key}") for key in ("resource", "name", "uid") if not consumer.get(key)]


def _allocation_causes(allocation: Obj, at: str, known: Requests) -> list[Cause]:
    devices, here = allocation.get("devices") or {}, f"{at}.devices"
    causes = each(
        devices.get("results") or [],
        f"{here}.results",
        MOST,
        lambda one, path: _result_causes(one, path, known),
    )
    causes += each(
        devices.get("config") or [],
        f"{here}.config",
        2 * MOST,
        lambda one, path: _allocated_configuration_causes(one, path, known),
    )
    if allocation.get("nodeSelector") is not None:
        causes += node_selector_causes(allocation["nodeSelector"], f"{at}.nodeSelector")
    return causes


def _result_causes(result: Obj, at: str, known: Requests) -> list[Cause]:
    causes = request_reference(f"{at}.request", result.get("request", ""), known)
    return causes + _device_causes(result, at) + binding_causes(result, at)


def _device_causes(holder: Obj, at: str) -> list[Cause]:
    """Faults of the names of a device."""
    driver, pool, device = device_of(holder)
    causes = driver_name(f"{at}.driver", driver) + pool_name(f"{at}.pool", pool)
    causes += label_name(f"{at}.device", device)
    return causes + share_uid(f"{at}.shareID", holder.get("shareID"))


def binding_causes(holder: Obj, at: str) -> list[Cause]:
    """Faults of the conditions for which a pod waits before it is bound: both kinds or none."""
    ready, failed = "bindingConditions", "bindingFailureConditions"
    causes: list[Cause] = []
    for kind in (ready, failed):
        given = holder.get(kind) or []
        causes += each(given, f"{at}.{kind}", MOST_CONDITIONS, lambda key, here: label_key(here, key))
        causes += repeated(given, f"{at}.{kind}", len(given))
    causes += [
        invalid(f"{at}.{failed}[{index}]", one, f"{failed} must not overlap with {ready}")
        for index, one in enumerate(holder.get(failed) or ())
        if one in (holder.get(ready) or ())
    ]
    for kind, other in ((ready, failed), (failed, ready)):
        if holder.get(other) and not holder.get(kind):
            causes.append(invalid(f"{at}.{kind}", None, f"{kind} are required to use {other}"))
    return causes


def _allocated_configuration_causes(config: Obj, at: str, known: Requests) -> list[Cause]:
    source = config.get("source", "")
    causes = one_of(f"{at}.source", source, _SOURCES) if source else [required(f"{at}.source")]
    causes += request_references(config.get("requests") or [], f"{at}.requests", known, MOST)
    return causes + configuration_causes(config, at)


def _reports_causes(status: Obj, at: str) -> list[Cause]:
    """Faults of drivers' reports: each must be about an allocated device, and unique for it."""
    allocated = {(device_of(one), one.get("shareID")) for one in _results(status)}
    seen: set[tuple[Device, str | None]] = set()
    causes: list[Cause] = []
    for index, report in enumerate(status.get("devices") or ()):
        here, key = f"{at}[{index}]", (device_of(report), report.get("shareID"))
        named = {"Driver": key[0][0], "Pool": key[0][1], "Device": key[0][2], "ShareID": key[1] or ""}
        causes += _device_causes(report, here)
        if key not in allocated:
            causes.append(invalid(here, named, "must be an allocated device in the claim"))
        if key in seen:
            causes.append(duplicate(here, named))
        seen.add(key)
        conditions = report.get("conditions") or []
        if len(conditions) > _MOST_REPORTED_CONDITIONS:
            causes.append(too_many(f"{here}.conditions", len(conditions), _MOST_REPORTED_CONDITIONS))
        causes += conditions_causes(conditions, f"{here}.conditions")
        if report.get("data") is not None:
            causes += raw_causes(report["data"], f"{here}.data")
        causes += _network_causes(report.get("networkData") or {}, f"{here}.networkData")
    return causes


def _network_causes(network: Obj, at: str) -> list[Cause]:
    causes = [
        too_long(f"{at}.{field}", most)
        for field, most in _LONGEST.items()
        if len(network.get(field, "")) > most
    ]
    addresses, here = network.get("ips") or [], f"{at}.ips"
    causes += each(addresses, here, _MOST_ADDRESSES, lambda text, path: interface_address(path, text))
    return causes + repeated(addresses, here, _MOST_ADDRESSES)
