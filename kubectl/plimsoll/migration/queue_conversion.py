"""Converts queues of Kueue, Volcano and KAI to those of one policy's ``spec.scheduling.fairShare``.

Sources: Kueue v0.14 (``ClusterQueue``, ``Cohort``, ``LocalQueue``), Volcano v1.13
(``scheduling.volcano.sh/v1beta1``), KAI v0.9 (``scheduling.run.ai/v2``: cpu in milli, memory in megabytes,
-1 for no limit, gpu without a name of the device plugin's resource).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import nan
from typing import Any

from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.report import Note, ReportWriter, carried, differs, dropped
from plimsoll.model.quantity import QuantityError, milli, units

QUEUES = "spec.scheduling.fairShare.queues"

LOCAL_QUEUE, COHORT = "LocalQueue", "Cohort"

#: The resource that KAI's ``gpu`` counts.
GPU = "nvidia.com/gpu"

KUEUE = ("kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1alpha1")

VOLCANO, KAI = "scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2"

VERSIONS: Mapping[str, tuple[str, ...]] = {
    "Queue": (VOLCANO, KAI),
    "ClusterQueue": KUEUE,
    COHORT: KUEUE,
    LOCAL_QUEUE: KUEUE,
}
"""API versions that are read, by kind."""

Found = dict[str, Any]


def converted_queue(document: Mapping[str, Any], report: ReportWriter, policy: str) -> Found | None:
    """The queue that an object becomes; None for one that becomes none.

    Raises:
        ConfigurationError: It has no name, or an amount that cannot be; names the field.
    """
    name, spec = (document.get("metadata") or {}).get("name"), document.get("spec") or {}
    if not name or not isinstance(spec, Mapping):
        raise ConfigurationError("metadata.name", "a name is required")
    found: Found = {"name": str(name)}
    kind, version = str(document["kind"]), str(document["apiVersion"])
    read = _cohort if kind == COHORT else READERS[version]
    try:
        report.add(_local(document, spec) if kind == LOCAL_QUEUE else read(spec, found), policy)
    except (QuantityError, TypeError, ValueError, AttributeError) as exc:
        raise ConfigurationError("spec", f"an amount or a list cannot be read: {exc}") from exc
    return None if kind == LOCAL_QUEUE else found


def in_a_tree(found: Iterable[Found], cohorts: set[str]) -> list[Found]:
    """All queues, with those that others name as their parent; cohorts guarantee what those below them do.

    Args:
        found: The queues.
        cohorts: Names of those whose amounts come on top of those below them.
    """
    queues = {each["name"]: each for each in found}
    for name in sorted({each["parent"] for each in queues.values() if "parent" in each} - queues.keys()):
        queues[name] = {"name": name}
        cohorts.add(name)
    own = {
        name: {of: _amount(of, text) for of, text in each.get("guaranteed", {}).items()}
        for name, each in queues.items()
    }
    for name, amounts in own.items():
        above, seen = queues[name].get("parent"), {name}
        while above in cohorts and above not in seen:
            seen.add(above)
            total = {of: _amount(of, text) for of, text in queues[above].get("guaranteed", {}).items()}
            _set(
                queues[above],
                "guaranteed",
                {of: total.get(of, 0) + amounts.get(of, 0) for of in total | amounts},
            )
            above = queues[above].get("parent")
    return list(queues.values())


def _local(document: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Note]:
    metadata = document["metadata"]
    where = f"namespace {metadata.get('namespace', 'default')}"
    told = f"Pods of {where} carry the label plimsoll.dev/queue: {spec.get('clusterQueue')} instead of the"
    sentence = f"{told} label kueue.x-k8s.io/queue-name: {metadata['name']}."
    yield differs("pods", sentence, ("spec", "clusterQueue"))


def _kueue(spec: Mapping[str, Any], found: Found) -> Iterator[Note]:
    """Nominal quotas of all flavors together are guaranteed; with borrowing limits they are the most."""
    parents = ("cohortName", "cohort", "parentName", "parent")
    parent = next((each for each in parents if spec.get(each)), None)
    if parent is not None:
        found["parent"] = spec[parent]
        yield carried(("spec", parent), f"{QUEUES}[].parent")
    nominal: dict[str, int] = {}
    most: dict[str, int | None] = {}
    for g, group in enumerate(spec.get("resourceGroups") or ()):
        for f, flavor in enumerate(group.get("flavors") or ()):
            at: Path = ("spec", "resourceGroups", g, "flavors", f)
            yield dropped((*at, "name"), "Amounts of all flavors are added: nodes are chosen by the pods.")
            for r, resource in enumerate(flavor.get("resources") or ()):
                name, here = resource["name"], (*at, "resources", r)
                amount = _amount(name, resource.get("nominalQuota", 0))
                nominal[name] = nominal.get(name, 0) + amount
                yield carried((*here, "nominalQuota"), f"{QUEUES}[].guaranteed")
                limit = resource.get("borrowingLimit", None if parent else 0)
                before = most.get(name, 0)
                most[name] = (
                    None if limit is None or before is None else before + amount + _amount(name, limit)
                )
                yield carried(
                    (*here, "borrowingLimit"),
                    f"{QUEUES}[].capability",
                    "The quota and what may be borrowed, together.",
                )
                yield dropped(
                    (*here, "lendingLimit"),
                    "What a queue does not request is lent.",
                )
    capability = {name: amount for name, amount in most.items() if amount is not None}
    _set(found, "guaranteed", {name: amount for name, amount in nominal.items() if amount})
    _set(found, "capability", capability)
    yield from _weight(spec.get("fairSharing") or {}, found, ("spec", "fairSharing"), "weight")
    yield dropped(
        ("spec", "preemption"),
        "The policy reclaims what queues have above what they deserve.",
    )
    yield dropped(("spec", "namespaceSelector"), "Any pod may name a queue.")
    yield dropped(("spec", "stopPolicy"), "A queue cannot be stopped; hold its pods by scheduling gates.")


def _cohort(spec: Mapping[str, Any], found: Found) -> Iterator[Note]:
    """Its quotas come on top of those of its queues: they are no ceiling of all of them."""
    for note in _kueue(spec, found):
        if note.target.endswith(".capability") and note.source is not None:
            yield dropped(note.source, "Write a capability for all queues below the cohort together.")
        else:
            yield note
    found.pop("capability", None)


def _volcano(spec: Mapping[str, Any], found: Found) -> Iterator[Note]:
    if spec.get("parent") not in (None, "", "root"):
        found["parent"] = spec["parent"]
        yield carried(("spec", "parent"), f"{QUEUES}[].parent")
    yield from _weight(spec, found, ("spec",), "weight")
    guaranteed = ("deserved",) if spec.get("deserved") else ("guarantee", "resource")
    for path, target in ((guaranteed, "guaranteed"), (("capability",), "capability")):
        value: Any = spec
        for part in path:
            value = (value or {}).get(part)
        if value:
            found[target] = {name: str(amount) for name, amount in value.items()}
            yield carried(("spec", *path), f"{QUEUES}[].{target}")
    if spec.get("deserved"):
        yield dropped(("spec", "guarantee"), "What is deserved is guaranteed.")
    if spec.get("reclaimable") is False:
        found["reclaimable"] = False
    yield carried(("spec", "reclaimable"), f"{QUEUES}[].reclaimable")
    yield dropped(("spec", "affinity"), "Queues have no nodes; write node affinity into the pods.")
    yield dropped(("spec", "priority"), "The queue with the least for its weight goes first.")


def _kai(spec: Mapping[str, Any], found: Found) -> Iterator[Note]:
    if spec.get("parentQueue"):
        found["parent"] = spec["parentQueue"]
        yield carried(("spec", "parentQueue"), f"{QUEUES}[].parent")
    guaranteed: dict[str, int] = {}
    most: dict[str, int] = {}
    weights: set[float] = set()
    for key, (name, factor) in {"cpu": ("cpu", 1), "memory": ("memory", 10**6), "gpu": (GPU, 1)}.items():
        part, at = (spec.get("resources") or {}).get(key) or {}, ("spec", "resources", key)
        for field, into, target in (("quota", guaranteed, "guaranteed"), ("limit", most, "capability")):
            amount = part.get(field, 0 if field == "quota" else -1)
            if amount > 0 or (amount == 0 and field == "limit"):
                into[name] = round(amount * factor)
            sentence = f"Written as {target} of {name}." if key == "gpu" else ""
            yield carried((*at, field), f"{QUEUES}[].{target}", sentence)
        if "overQuotaWeight" in part:
            weights.add(part["overQuotaWeight"])
            yield from _weight(part, found, at, "overQuotaWeight")
    if len(weights) > 1:
        yield differs(f"{QUEUES}[].weight", "A queue has one weight for all resources: the last one's.")
    _set(found, "guaranteed", guaranteed)
    _set(found, "capability", most)
    if spec.get("reclaimMinRuntime"):
        found["reclaimMinRuntimeSeconds"] = _seconds(str(spec["reclaimMinRuntime"]))
        yield carried(("spec", "reclaimMinRuntime"), f"{QUEUES}[].reclaimMinRuntimeSeconds")
    yield dropped(("spec", "preemptMinRuntime"), "Preemption by priority asks for no run time.")
    yield dropped(("spec", "priority"), "The queue with the least for its weight goes first.")
    yield dropped(("spec", "displayName"), "The name of the queue is shown.")


def _weight(given: Mapping[str, Any], found: Found, at: Path, key: str) -> Iterator[Note]:
    if key in given:
        value = float(given[key])
        found["weight"] = max(1, round(value))
        if value == found["weight"]:
            yield carried((*at, key), f"{QUEUES}[].weight")
        else:
            yield differs(f"{QUEUES}[].weight", "Weights are whole numbers from 1 on.", (*at, key))


def _amount(name: str, value: Any) -> int:
    """Cpu in milli, the rest in units."""
    read: Callable[[str | int], int] = milli if name == "cpu" else units
    return read(value)


def _set(found: Found, key: str, amounts: Mapping[str, int]) -> None:
    if amounts:
        found[key] = {name: _text(name, amount) for name, amount in amounts.items()}


def _text(name: str, amount: int) -> str:
    return f"{amount}m" if name == "cpu" else str(amount)


def _seconds(text: str) -> int:
    """A duration as Go writes it, such as 1h30m."""
    total, number = 0.0, ""
    for sign in text:
        if sign.isdigit() or sign == ".":
            number += sign
        else:
            total, number = total + float(number) * {"h": 3600, "m": 60, "s": 1}.get(sign, nan), ""
    return round(total)


READERS: Mapping[str, Callable[[Mapping[str, Any], Found], Iterator[Note]]] = {
    **dict.fromkeys(KUEUE, _kueue),
    VOLCANO: _volcano,
    KAI: _kai,
}
"""What reads the spec of a queue, by API version; cohorts have a reader of their own."""
