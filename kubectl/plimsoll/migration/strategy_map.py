"""Rewrites a DeschedulerPolicy v1alpha1, a map of strategies, as v1alpha2, as descheduler itself did.

Each enabled strategy becomes a profile of its own; the policy's booleans become arguments of its evictor.
Upstream iterated over the map in random order; here the written order counts. Parameters of releases before
0.20 are also read (``maxPodLifeTimeSeconds`` directly in ``params``, ``podStatusPhases``).

Source: descheduler v0.26, ``pkg/api/v1alpha1`` (types, strategymigration, conversion).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct, field

from plimsoll.framework import ConfigurationError
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.migration.descheduler_profiles import EVICTOR, STRATEGIES
from plimsoll.migration.documents import Path
from plimsoll.migration.report import Note, dropped, path_text

#: Fields of the file that are the same in v1alpha2.
SAME = (
    "nodeSelector",
    "maxNoOfPodsToEvictPerNode",
    "maxNoOfPodsToEvictPerNamespace",
    "maxNoOfPodsToEvictTotal",
)

#: Fields of the file that become arguments of every profile's evictor.
BOOLEANS = (
    "evictSystemCriticalPods",
    "evictFailedBarePods",
    "evictLocalStoragePods",
    "evictDaemonSetPods",
    "ignorePvcPods",
)

_SCOPED = {"namespaces": "namespaces", "labelSelector": "labelSelector"}
_UTILIZATION = "nodeResourceUtilizationThresholds"

#: By strategy: parameters (with their parent) and the arguments that they become.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "RemoveDuplicates": {
        "namespaces": "namespaces",
        "removeDuplicates.excludeOwnerKinds": "excludeOwnerKinds",
    },
    "LowNodeUtilization": {
        "namespaces": "evictableNamespaces",
        f"{_UTILIZATION}.thresholds": "thresholds",
        f"{_UTILIZATION}.targetThresholds": "targetThresholds",
        f"{_UTILIZATION}.numberOfNodes": "numberOfNodes",
        f"{_UTILIZATION}.useDeviationThresholds": "useDeviationThresholds",
    },
    "HighNodeUtilization": {
        "namespaces": "evictableNamespaces",
        f"{_UTILIZATION}.thresholds": "thresholds",
        f"{_UTILIZATION}.numberOfNodes": "numberOfNodes",
    },
    "RemovePodsViolatingInterPodAntiAffinity": _SCOPED,
    "RemovePodsViolatingNodeAffinity": _SCOPED | {"nodeAffinityType": "nodeAffinityType"},
    "RemovePodsViolatingNodeTaints": _SCOPED
    | {
        "includePreferNoSchedule": "includePreferNoSchedule",
        "excludedTaints": "excludedTaints",
        "includedTaints": "includedTaints",
    },
    "RemovePodsViolatingTopologySpreadConstraint": _SCOPED | {"includeSoftConstraints": "constraints"},
    "RemovePodsHavingTooManyRestarts": _SCOPED
    | {
        "podsHavingTooManyRestarts.podRestartThreshold": "podRestartThreshold",
        "podsHavingTooManyRestarts.includingInitContainers": "includingInitContainers",
    },
    "PodLifeTime": _SCOPED
    | {
        "maxPodLifeTimeSeconds": "maxPodLifeTimeSeconds",
        "podLifeTime.maxPodLifeTimeSeconds": "maxPodLifeTimeSeconds",
        "podLifeTime.podStatusPhases": "states",
        "podLifeTime.states": "states",
    },
    "RemoveFailedPods": _SCOPED
    | {
        "failedPods.excludeOwnerKinds": "excludeOwnerKinds",
        "failedPods.minPodLifetimeSeconds": "minPodLifetimeSeconds",
        "failedPods.reasons": "reasons",
        "failedPods.includingInitContainers": "includingInitContainers",
    },
}


class Rewritten(Struct):
    """The policy in v1alpha2.

    Attributes:
        origins: Maps paths in it to paths of the file; None for values that the file does not contain.
        second_origins: The same, for values that combine two fields of the file.
        notes: Fields without a counterpart in it; paths of the file.
    """

    document: dict[str, Any]
    origins: dict[Path, Path | None] = field(default_factory=dict)
    second_origins: dict[Path, Path | None] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    @contextmanager
    def named_as_written(self) -> Iterator[None]:
        """Replace the path in a ConfigurationError by the path in the file."""
        try:
            yield
        except ConfigurationError as exc:
            for path in sorted(self.origins, key=len, reverse=True):
                text, original = path_text(path), self.origins[path]
                if original is not None and exc.path.startswith(text):
                    written = path_text(original) + exc.path.removeprefix(text)
                    raise ConfigurationError(written, exc.problem) from exc
            raise


def as_v1alpha2(document: Mapping[str, Any]) -> Rewritten:
    """Convert the policy to v1alpha2.

    Raises:
        ConfigurationError: It is malformed; names the field.
    """
    found = Rewritten({"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []})
    for key in SAME:
        if document.get(key) is not None:
            found.document[key] = document[key]
    booleans = {key: document[key] for key in BOOLEANS if document.get(key) is not None}
    strategies = _mapping(document.get("strategies") or {}, ("strategies",))
    for name, given in strategies.items():
        at = ("strategies", name)
        strategy = _mapping(given or {}, at)
        if name not in STRATEGIES or name not in ARGUMENTS:
            known = ", ".join(sorted(ARGUMENTS))
            raise ConfigurationError(path_text(at), f'v1alpha1 has no strategy "{name}"; it has {known}')
        if strategy.get("enabled") is not True:
            found.notes.append(dropped(at, "The strategy is not enabled; left out."))
            continue
        if "weight" in strategy:
            found.notes.append(dropped((*at, "weight"), "descheduler never read it."))
        _add_profile(found, name, _mapping(strategy.get("params") or {}, (*at, "params")), booleans)
    return found


def _add_profile(found: Rewritten, name: str, params: Mapping[str, Any], booleans: Mapping[str, Any]) -> None:
    at: Path = ("strategies", name)
    profiles = found.document["profiles"]
    profile: Path = ("profiles", len(profiles))
    evictor: dict[str, Any] = dict(booleans)
    args: dict[str, Any] = {}
    origins = found.origins
    origins[profile] = None
    for key in booleans:
        origins[(*profile, "pluginConfig", 0, "args", key)] = (key,)
    used = {"thresholdPriority", "thresholdPriorityClassName", "nodeFit"}
    origins[(*profile, "pluginConfig", 1, "args")] = (*at, "params")
    for path, value in _flat(params, ARGUMENTS[name]):
        argument = ARGUMENTS[name].get(path)
        where = (*at, "params", *path.split("."))
        if argument is None:
            if path not in used:
                found.notes.append(dropped(where, f"{name} does not read this parameter."))
            continue
        origin = (*profile, "pluginConfig", 1, "args", argument)
        (found.second_origins if argument in args else origins)[origin] = where
        if argument == "constraints":
            args[argument] = ["DoNotSchedule", "ScheduleAnyway"] if value is True else ["DoNotSchedule"]
        elif argument == "states":
            if not isinstance(value, list):
                raise ConfigurationError(path_text(where), "it is not a list")
            args[argument] = [*args.get(argument, ()), *value]
        else:
            args[argument] = value
    _add_evictor_args(found, name, params, evictor, profile)
    kind: StrategyKind = STRATEGIES[name].kind
    origins[(*profile, "plugins", kind.value, "enabled", 0)] = (*at, "enabled")
    profiles.append(
        {
            "name": name,
            "pluginConfig": [{"name": EVICTOR, "args": evictor}, {"name": name, "args": args}],
            "plugins": {kind.value: {"enabled": [name]}},
        }
    )


def _add_evictor_args(
    found: Rewritten, name: str, params: Mapping[str, Any], evictor: dict[str, Any], profile: Path
) -> None:
    """Add the parameters of a strategy that are evictor arguments in v1alpha2."""
    at: Path = ("strategies", name)
    origins = found.origins
    threshold = {
        field: params[key]
        for key, field in (("thresholdPriority", "value"), ("thresholdPriorityClassName", "name"))
        if params.get(key) not in (None, "")
    }
    if threshold:
        evictor["priorityThreshold"] = threshold
        key = "thresholdPriority" if "value" in threshold else "thresholdPriorityClassName"
        origins[(*profile, "pluginConfig", 0, "args", "priorityThreshold")] = (*at, "params", key)
    if params.get("nodeFit") is not None:
        if name == "PodLifeTime":
            text = "PodLifeTime does not read this parameter; its pods need no other node."
            found.notes.append(dropped((*at, "params", "nodeFit"), text))
        else:
            evictor["nodeFit"] = params["nodeFit"]
            origins[(*profile, "pluginConfig", 0, "args", "nodeFit")] = (*at, "params", "nodeFit")


def _flat(params: Mapping[str, Any], known: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Parameters, with those that contain fields replaced by these; nulls are left out."""
    for key, value in params.items():
        if value is None:
            continue
        if key not in known and isinstance(value, Mapping):
            yield from ((f"{key}.{field}", item) for field, item in value.items() if item is not None)
        else:
            yield key, value


def _mapping(value: Any, at: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path_text(at), "it is not an object")
    return value
