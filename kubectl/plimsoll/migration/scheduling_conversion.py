"""Converts a KubeSchedulerConfiguration to SchedulingPolicies, one for each profile.

Source: kube-scheduler v1.36 (``kubescheduler.config.k8s.io/v1``).
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from plimsoll.api.v1alpha1.scheduling import PluginsSpec
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.extender_conversion import extender_spec
from plimsoll.migration.report import FieldChange, Note, ReportWriter, carried, differs, dropped, path_text
from plimsoll.migration.scheduler_process import process_notes
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER

WHERE = "spec.scheduling"

POINTS = tuple(str(each.alias) for each in PluginsSpec.model_fields.values())

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
    **dict.fromkeys(
        ("Dynamic", "LoadAwareScheduling", "LoadVariationRiskBalancing", "TargetLoadPacking"),
        "NodeLoad places by what nodes use.",
    ),
    "CapacityScheduling": "spec.scheduling.fairShare divides the cluster between queues.",
}


def scheduling_policies(
    document: Mapping[str, Any],
    report: ReportWriter,
    plugins: Collection[str],
    *,
    keep: bool,
    suspended: bool = False,
) -> list[tuple[str, dict[str, Any]]]:
    """Names and specs of the policies.

    Args:
        document: A KubeSchedulerConfiguration.
        report: Receives a note for each field.
        plugins: Names of the available plugins; others are left out.
        keep: Whether extenders that kube-scheduler does not verify stay unverified.
        suspended: Whether the policies only describe kube-scheduler, which goes on.

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
    found = []
    for position, profile in enumerate(profiles):
        at = ("profiles", position)
        name = _scheduler_name(profile, at, only=len(profiles) == 1)
        spec, notes = _scheduling(profile, at, name, plugins, suspended=suspended)
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
    profile: Mapping[str, Any], at: Path, name: str, known: Collection[str], *, suspended: bool
) -> tuple[dict[str, Any], list[Note]]:
    target = f"{WHERE}.schedulerName"
    sentence = (
        f"Plimsoll expects pods of {name} where this profile puts them; kube-scheduler goes on placing them."
        if suspended
        else f"Stop kube-scheduler's profile {name} before the policy is applied: one scheduler serves a"
        " name."
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
            if name not in known and not (key == "disabled" and name == "*"):
                notes.append(dropped(where, _absent(name, key)))
                continue
            weight = {"weight": plugin["weight"]} if key == "enabled" and plugin.get("weight") else {}
            notes.append(carried(where, f"{target}.{key}[{len(items)}]"))
            items.append({"name": name, **weight})
        if items:
            chosen[key] = items
    return chosen


def _absent(name: str, key: str) -> str:
    if name in ELSEWHERE:
        return f"There is no plugin {name}. {ELSEWHERE[name]}"
    if key == "disabled":
        return f"There is no plugin {name}, so there is nothing to disable."
    return f"There is no plugin {name}; write one against plimsoll.framework and add it to the policy."


def _configs(
    profile: Mapping[str, Any], at: Path, known: Collection[str], notes: list[Note]
) -> Iterator[dict[str, Any]]:
    count = 0
    for position, item in enumerate(_list(profile.get("pluginConfig"), (*at, "pluginConfig"))):
        where = (*at, "pluginConfig", position)
        config = _object(item, where)
        name = str(config.get("name") or "")
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
