"""Converts a KubeSchedulerConfiguration to SchedulingPolicies, one for each profile.

Source: kube-scheduler v1.36 (``kubescheduler.config.k8s.io/v1``), and v1.24 and v1.28 for the default weights
of v1beta2 and v1beta3.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.api.v1alpha1.scheduling import PluginsSpec
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.extender_conversion import extender_spec
from plimsoll.migration.load_plugins import BY_LOAD, NODE_LOAD, load_args
from plimsoll.migration.load_plugins import POINTS as LOAD_POINTS
from plimsoll.migration.report import FieldChange, Note, ReportWriter, carried, differs, dropped, path_text
from plimsoll.migration.scheduler_process import process_notes
from plimsoll.plugins import DEFAULT_PLUGINS

WHERE = "spec.scheduling"
DEFAULT_SCHEDULER = "default-scheduler"
MULTI_POINT = "multiPoint"

POINTS = tuple(str(each.alias) for each in PluginsSpec.model_fields.values())

#: Weights of the default profile in v1beta2 that differ from today's.
OLD_WEIGHTS = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}

#: Plugins of other releases and of scheduler-plugins, with their replacement here.
ELSEWHERE = {
    **dict.fromkeys(
        ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NonCSILimits"),
        "NodeVolumeLimits counts volumes of CSI drivers.",
    ),
    "SelectorSpread": "PodTopologySpread has the constraints that replaced it.",
    "NodePreferAvoidPods": "Use a taint with effect PreferNoSchedule.",
    "NodeLabel": "Use node affinity.",
    "ServiceAffinity": "Use pod affinity.",
    "NodeResourcesLeastAllocated": "It is scoringStrategy LeastAllocated of NodeResourcesFit.",
    "NodeResourcesMostAllocated": "It is scoringStrategy MostAllocated of NodeResourcesFit.",
    "RequestedToCapacityRatio": "It is scoringStrategy RequestedToCapacityRatio of NodeResourcesFit.",
    "Coscheduling": "Pods of a PodGroup start together without a plugin; write PodGroups of plimsoll.dev.",
    **dict.fromkeys(
        ("GangScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount"),
        "Pods of PodGroups of scheduling.k8s.io start together without a plugin.",
    ),
    "CapacityScheduling": "spec.scheduling.fairShare divides the cluster between queues.",
}


def scheduling_policies(
    document: Mapping[str, Any], report: ReportWriter, plugins: Collection[str], *, keep: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Names and specs of the policies.

    Args:
        document: A KubeSchedulerConfiguration.
        report: Receives a note for each field.
        plugins: Names of the available plugins; others are left out.
        keep: Whether to write out the defaults of older versions.

    Raises:
        ConfigurationError: It is malformed, or a part has no counterpart; names the field.
    """
    profiles = [
        _object(each, ("profiles", position))
        for position, each in enumerate(_list(document.get("profiles"), ("profiles",)))
    ] or [{}]
    extenders: list[dict[str, Any]] = []
    extender_notes: list[Note] = []
    for position, given in enumerate(_list(document.get("extenders"), ("extenders",))):
        at: Path = ("extenders", position)
        spec, notes = extender_spec(_object(given, at), at, keep=keep)
        extenders.append(spec)
        extender_notes += notes
    is_old = str(document.get("apiVersion", "")).endswith("v1beta2")
    found = []
    for position, profile in enumerate(profiles):
        at = ("profiles", position)
        name = _scheduler_name(profile, at, only=len(profiles) == 1)
        spec, notes = _scheduling(profile, at, name, plugins)
        if is_old:
            notes += _old_weights(spec, keep=keep)
        if extenders:
            spec["extenders"] = extenders
            notes += extender_notes
        report.add(notes, name)
        found.append((name, {"scheduling": spec}))
    if document.get("percentageOfNodesToScore") is None:
        sampled = [name for (name, _), each in zip(found, profiles, strict=True) if _is_sampled(each)]
        for name in sampled:
            sentence = "kube-scheduler scores a sample of the nodes of large clusters; here all are scored."
            report.add([differs(WHERE, sentence)], name)
    report.add(process_notes(document))
    return found


def _scheduler_name(profile: Mapping[str, Any], at: Path, *, only: bool) -> str:
    name = profile.get("schedulerName")
    if name is None and only:
        return DEFAULT_SCHEDULER
    if not isinstance(name, str) or not name:
        raise ConfigurationError(path_text((*at, "schedulerName")), "a name is required")
    return name


def _scheduling(
    profile: Mapping[str, Any], at: Path, name: str, known: Collection[str]
) -> tuple[dict[str, Any], list[Note]]:
    target = f"{WHERE}.schedulerName"
    sentence = (
        f"Stop kube-scheduler's profile {name} before the policy is applied: one scheduler serves a name."
    )
    if "schedulerName" in profile:
        notes = [carried((*at, "schedulerName"), target, sentence)]
    else:
        notes = [Note(FieldChange.KEPT, None, target, f"{DEFAULT_SCHEDULER} is the default. {sentence}")]
    spec: dict[str, Any] = {"schedulerName": name}
    plugins: dict[str, Any] = {}
    for point, given in _object(profile.get("plugins") or {}, (*at, "plugins")).items():
        where = (*at, "plugins", point)
        if point not in POINTS:
            notes.append(dropped(where, "There is no such extension point; no plugin of ours needs it."))
            continue
        chosen = _plugin_set(_object(given or {}, where), where, f"{WHERE}.plugins.{point}", known, notes)
        if chosen:
            plugins[point] = chosen
    if plugins:
        spec["plugins"] = plugins
    configs = list(_configs(profile, at, known, notes))
    if configs:
        spec["pluginConfig"] = configs
    if profile.get("percentageOfNodesToScore") is not None:
        notes.append(dropped((*at, "percentageOfNodesToScore"), "All feasible nodes are scored."))
    return spec, notes


def _plugin_set(
    given: Mapping[str, Any], at: Path, target: str, known: Collection[str], notes: list[Note]
) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for key in ("enabled", "disabled"):
        items: list[dict[str, Any]] = []
        for position, item in enumerate(_list(given.get(key), (*at, key))):
            where = (*at, key, position)
            plugin = _object(item, where)
            name = str(plugin.get("name") or "")
            sentence = ""
            if name in BY_LOAD and key == "enabled":
                reason = _left_out(name, at, items)
                if reason:
                    notes.append(dropped(where, reason))
                    continue
                name, sentence = NODE_LOAD, f"{NODE_LOAD} does the work of {name}."
            if name not in known and not (key == "disabled" and name == "*"):
                notes.append(dropped(where, _absent(name, key)))
                continue
            weight = {"weight": plugin["weight"]} if key == "enabled" and plugin.get("weight") else {}
            notes.append(carried(where, f"{target}.{key}[{len(items)}]", sentence))
            items.append({"name": name, **weight})
        if items:
            chosen[key] = items
    return chosen


def _left_out(name: str, at: Path, items: Sequence[Mapping[str, Any]]) -> str:
    """Why a plugin that places by load is left out at an extension point; "" if it is not."""
    if at[-1] not in LOAD_POINTS:
        return f"{NODE_LOAD} does the work of {name}, and has no {at[-1]}."
    if any(each["name"] == NODE_LOAD for each in items):
        return f"{NODE_LOAD} does the work of {name}, and is enabled already."
    return ""


def _absent(name: str, key: str) -> str:
    if name in ELSEWHERE:
        return f"There is no plugin {name}. {ELSEWHERE[name]}"
    if key == "disabled":
        return f"There is no plugin {name}, so there is nothing to disable."
    return f"There is no plugin {name}; write one against plimsoll.framework and add it to the policy."


def _configs(
    profile: Mapping[str, Any], at: Path, known: Collection[str], notes: list[Note]
) -> Iterator[dict[str, Any]]:
    count, is_by_load = 0, False
    for position, item in enumerate(_list(profile.get("pluginConfig"), (*at, "pluginConfig"))):
        where = (*at, "pluginConfig", position)
        config = _object(item, where)
        name = str(config.get("name") or "")
        if name in BY_LOAD:
            target = f"{WHERE}.pluginConfig[{count}]"
            if is_by_load:
                notes.append(dropped(where, f"{NODE_LOAD} has arguments already; {name}'s are left out."))
                continue
            is_by_load, count = True, count + 1
            notes.append(carried((*where, "name"), f"{target}.name", f"{NODE_LOAD} does the work of {name}."))
            given = _object(config.get("args") or {}, (*where, "args"))
            wanted = {key: value for key, value in given.items() if key not in ("apiVersion", "kind")}
            found = load_args(name, wanted, where, target, notes)
            yield {"name": NODE_LOAD, "args": found} if found else {"name": NODE_LOAD}
            continue
        if name not in known:
            notes.append(dropped(where, _absent(name, "enabled")))
            continue
        args = {
            key: value
            for key, value in _object(config.get("args") or {}, (*where, "args")).items()
            if key not in ("apiVersion", "kind") and value is not None
        }
        target = f"{WHERE}.pluginConfig[{count}]"
        notes.append(carried((*where, "name"), f"{target}.name"))
        notes += [carried((*where, "args", key), f"{target}.args.{key}") for key in args]
        count += 1
        yield {"name": name, "args": args} if args else {"name": name}


def _old_weights(spec: dict[str, Any], *, keep: bool) -> list[Note]:
    """Notes on the default weights of v1beta2."""
    plugins = spec.get("plugins", {})
    sets: Sequence[Mapping[str, Any]] = [plugins.get(MULTI_POINT, {}), plugins.get("score", {})]
    named = {each["name"] for one in sets for key in ("enabled", "disabled") for each in one.get(key, ())}
    if "*" in named:
        return []
    free = [name for name in OLD_WEIGHTS if name not in named]
    target = f"{WHERE}.plugins.{MULTI_POINT}.enabled"
    if keep and free:
        multi = spec.setdefault("plugins", {}).setdefault(MULTI_POINT, {})
        multi["enabled"] = [
            *multi.get("enabled", ()),
            *({"name": name, "weight": OLD_WEIGHTS[name]} for name in free),
        ]
        text = "v1beta2's default weights, written out."
        return [Note(FieldChange.KEPT, None, f"{target}[{name}]", text) for name in free]
    return [
        differs(
            f"{target}[{name}]",
            f"The default weight of {name} is {DEFAULT_PLUGINS[name]}; v1beta2 had {OLD_WEIGHTS[name]}.",
        )
        for name in free
    ]


def _is_sampled(profile: Mapping[str, Any]) -> bool:
    return profile.get("percentageOfNodesToScore") is None


def _object(value: Any, at: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(path_text(at), "it is not an object")
    return value


def _list(value: Any, at: Path) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigurationError(path_text(at), "it is not a list")
    return value
