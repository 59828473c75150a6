"""Converts LowNodeLoad of a DeschedulerConfiguration, koordinator's file, to SchedulingPolicies.

There is one policy for the plugin's own thresholds and one for each of its node pools; other plugins are left
out. Node usage is read from metrics.k8s.io instead of NodeMetrics.

Source: koordinator a7a1b76b, ``pkg/descheduler/apis/config/v1alpha2`` and ``framework/plugins/loadaware``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plimsoll.api.schema.fields import MAX_COUNT, duration_s
from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS
from plimsoll.framework import ConfigurationError
from plimsoll.migration.documents import Path
from plimsoll.migration.report import FieldChange, Note, ReportWriter, carried, differs, dropped, path_text

WHERE = "spec.rebalancing"
STRATEGY = f"{WHERE}.strategies[0]"

LOW_NODE_LOAD = "LowNodeLoad"

#: Schedulers whose pods koordinator moves in most clusters.
SCHEDULERS = ("default-scheduler", "koord-scheduler")

#: Default number of rounds above the threshold that do not yet trigger moves.
ABNORMALITIES = 5

LIMITS = {
    "maxNoOfPodsToEvictTotal": "total",
    "maxNoOfPodsToEvictPerNode": "perNode",
    "maxNoOfPodsToEvictPerNamespace": "perNamespace",
}

#: Fields that both the plugin and its pools have.
OF_POOLS = ("lowThresholds", "highThresholds", "useDeviationThresholds", "anomalyCondition", "nodeSelector")

#: Reasons for which arguments are left out.
LEFT_OUT = {
    "nodeFit": "A pod is moved only to a node that the scheduler's own code proves to take it.",
    "resourceWeights": "Nodes are taken by how far they are above their lines.",
    "nodeMetricExpirationSeconds": "A reading counts for three of its intervals, five minutes at most.",
    "detectorCacheTimeout": "Rounds are counted for as long as the node is over-used.",
    "prodHighThresholds": "Lines hold for pods of every priority.",
    "prodLowThresholds": "Lines hold for pods of every priority.",
}

Given = tuple[Path, Mapping[str, Any]]
"""An object of the file, with its path."""


def load_policies(document: Mapping[str, Any], report: ReportWriter) -> list[tuple[str, dict[str, Any]]]:
    """Names and specs of the policies.

    Args:
        document: A DeschedulerConfiguration.
        report: Receives a note for each field.

    Raises:
        ConfigurationError: It is malformed; names the field.
    """
    found = []
    file: Given = (), document
    for profile in _objects(file, "profiles"):
        at, named = profile
        configs = {str(each[1].get("name")): each for each in _objects(profile, "pluginConfig")}
        enabled = _enabled(profile, report)
        report.add(
            dropped(where, f"Of koordinator's plugins {LOW_NODE_LOAD} is converted; left out.")
            for name, (where, _) in configs.items()
            if name != LOW_NODE_LOAD
        )
        if enabled is None:
            report.add([dropped(at, f"The profile does not enable {LOW_NODE_LOAD}; left out.")])
            continue
        args = _object(configs.get(LOW_NODE_LOAD, (at, {})), "args")
        pools = _objects(args, "nodePools")
        is_own = not pools or bool(args[1].get("lowThresholds"))
        for lines in [*([args] if is_own else []), *pools]:
            is_pool = lines is not args
            parts = ("koordinator", named.get("name"), lines[1].get("name") if is_pool else None)
            name = "-".join(str(each) for each in parts if each)
            spec: dict[str, Any] = {"scope": {"otherSchedulers": list(SCHEDULERS)}}
            notes = [
                carried(enabled, f"{STRATEGY}.name", "It becomes LowNodeUtilization."),
                Note(FieldChange.RENAMED, (*at, "name"), "metadata.name", "Part of the policy's name."),
                Note(FieldChange.RENAMED, (*lines[0], "name"), "metadata.name", "Part of the policy's name."),
            ]
            spec["rebalancing"] = {"mode": "DryRun"}
            notes += _whole(spec["rebalancing"], document)
            notes += _arguments(spec["rebalancing"], args, lines)
            notes += _pods(spec["scope"], args)
            notes += _nodes(spec["scope"], [file, profile, args, *([lines] if is_pool else [])])
            notes += _differences(shares=len(pools) + is_own > 1)
            report.add(notes, name)
            found.append((name, spec))
        if not is_own:
            unused = (key for key in OF_POOLS[:-1] if key in args[1])
            report.add(dropped((*args[0], key), "Each node pool has its own.") for key in unused)
    return found


def _whole(rebalancing: dict[str, Any], document: Mapping[str, Any]) -> Iterator[Note]:
    """Convert the fields that concern all profiles."""
    interval, limits = document.get("deschedulingInterval"), dict[str, int]()
    if interval is not None:
        try:
            seconds = duration_s(str(interval))
        except ValueError as exc:
            raise ConfigurationError("deschedulingInterval", str(exc)) from exc
        rebalancing["schedule"] = {"intervalSeconds": max(round(seconds), 1)}
        yield carried(("deschedulingInterval",), f"{WHERE}.schedule.intervalSeconds")
    if "dryRun" in document:
        yield carried(("dryRun",), f"{WHERE}.mode", "The mode is DryRun in either case.")
    for key, name in LIMITS.items():
        amount = document.get(key)
        if amount is not None:
            if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
                raise ConfigurationError(key, "must be a number of pods")
            limits[name] = min(amount, MAX_COUNT)
            yield carried((key,), f"{WHERE}.limits.{name}")
    if limits:
        rebalancing["limits"] = limits


def _arguments(rebalancing: dict[str, Any], args: Given, lines: Given) -> Iterator[Note]:
    """Convert the strategy: thresholds of the plugin or of a pool, and settings common to all pools."""
    strategy: dict[str, Any] = {}
    yield from _thresholds(strategy, lines)
    if "useDeviationThresholds" in lines[1]:
        strategy["useDeviationThresholds"] = lines[1]["useDeviationThresholds"]
        yield carried((*lines[0], "useDeviationThresholds"), f"{STRATEGY}.args.useDeviationThresholds")
    for key in ("numberOfNodes", "evictableNamespaces"):
        if key in args[1]:
            strategy[key] = args[1][key]
            yield carried((*args[0], key), f"{STRATEGY}.args.{key}")
    strategy["metricsUtilization"] = {"source": KUBERNETES_METRICS}
    for at, given in (args, lines):
        yield from (dropped((*at, key), why) for key, why in LEFT_OUT.items() if key in given)
    for key in ("paused", "dryRun"):
        yield carried((*args[0], key), f"{WHERE}.mode", "The mode is DryRun in either case.")
    rebalancing["anomalyRounds"], notes = _rounds(lines)
    yield from notes
    rebalancing["metricsProviders"] = [{"source": KUBERNETES_METRICS}]
    rebalancing["strategies"] = [{"name": "LowNodeUtilization", "args": strategy}]


def _thresholds(strategy: dict[str, Any], lines: Given) -> Iterator[Note]:
    at, _ = lines
    low, high = _object(lines, "lowThresholds")[1], _object(lines, "highThresholds")[1]
    for name in low:
        if name not in high:
            raise ConfigurationError(path_text((*at, "highThresholds")), f"has no {name}, lowThresholds does")
    for key, given, target in (
        ("lowThresholds", low, "thresholds"),
        ("highThresholds", high, "targetThresholds"),
    ):
        strategy[target] = {name: _percent(given[name], (*at, key, name)) for name in low}
        yield carried((*at, key), f"{STRATEGY}.args.{target}")
    for name in high:
        if name not in low:
            yield dropped(
                (*at, "highThresholds", name), "Without a low threshold it has no effect; left out."
            )


def _percent(value: Any, at: Path) -> float | int:
    try:
        number = float(str(value).removesuffix("%"))
    except ValueError as exc:
        raise ConfigurationError(path_text(at), "must be a percentage") from exc
    return int(number) if number == int(number) else number


def _rounds(lines: Given) -> tuple[int, Iterable[Note]]:
    """The rounds setting; the detector triggers in the round after this number, and immediately with one."""
    at, condition = _object(lines, "anomalyCondition")
    count, target = condition.get("consecutiveAbnormalities") or ABNORMALITIES, f"{WHERE}.anomalyRounds"
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ConfigurationError(path_text((*at, "consecutiveAbnormalities")), "must be a number of rounds")
    rounds = count if count == 1 else count + 1
    sentence = f"Koordinator acts in round {rounds}; a round without a new reading does not count here."
    where = (*at, "consecutiveAbnormalities") if "consecutiveAbnormalities" in condition else None
    ends = "A round in which the node is not over-used ends the count."
    notes = [Note(FieldChange.RENAMED if where else FieldChange.KEPT, where, target, sentence)]
    notes += [dropped((*at, key), ends) for key in ("timeout", "consecutiveNormalities") if key in condition]
    return rounds, notes


def _nodes(scope: dict[str, Any], selectors: Iterable[Given]) -> Iterator[Note]:
    """Convert node selectors, which must all match."""
    labels: dict[str, Any] = {}
    expressions: list[Any] = []
    for given in selectors:
        chosen = at, selector = _object(given, "nodeSelector")
        equal_at, equal = _object(chosen, "matchLabels")
        for key, value in equal.items():
            if labels.setdefault(key, value) != value:
                raise ConfigurationError(path_text((*equal_at, key)), "contradicts another selector")
        expressions += [each for _, each in _objects(chosen, "matchExpressions")]
        if selector:
            yield carried(at, "spec.scope.nodeSelector", "All selectors of the file hold.")
    found: dict[str, Any] = {"matchLabels": labels} if labels else {}
    if expressions:
        found["matchExpressions"] = expressions
    if found:
        scope["nodeSelector"] = found


def _pods(scope: dict[str, Any], args: Given) -> Iterator[Note]:
    """Convert the scope of pods; of several selectors, koordinator requires any to match."""
    selectors = _objects(args, "podSelectors")
    if len(selectors) > 1:
        problem = "a policy has one selector of pods; convert a file for each"
        raise ConfigurationError(path_text(selectors[1][0]), problem)
    for given in selectors:
        at, scope["podSelector"] = _object(given, "selector")
        yield carried(at, "spec.scope.podSelector")
        yield dropped((*given[0], "name"), "The selector of a policy has no name.")


def _differences(*, shares: bool) -> Iterator[Note]:
    yield differs(f"{WHERE}.mode", "DryRun records what would be moved; compare, then set Enforce.")
    yield differs(
        f"{WHERE}.planner",
        "Proven moves a pod only to a node that the scheduler prefers then and that stays below its lines;"
        " Koordinator reserves a place.",
    )
    yield differs(
        f"{WHERE}.metricsProviders",
        "metrics.k8s.io is read instead of NodeMetrics; name Prometheus for more.",
    )
    yield differs(
        "spec.scope.otherSchedulers",
        "Moves of their pods are forecasts. Pods that a policy places need NodeLoad in its profile, or they"
        " are not moved by load (TwoYardsticks): convert LoadAwareScheduling as well.",
    )
    yield differs(f"{WHERE}.limits", "Limits that the file does not have are 10, 2 of a node, 1 of an owner.")
    if shares:
        yield differs(
            "spec.scope.nodeSelector",
            "A node belongs to the first pool that selects it; here it belongs to every policy that does.",
        )


def _enabled(profile: Given, report: ReportWriter) -> Path | None:
    """The path at which LowNodeLoad is enabled; other plugins are left out."""
    found: Path | None = None
    plugins = _object(profile, "plugins")
    for point in plugins[1]:
        for at, plugin in _objects(_object(plugins, point), "enabled"):
            if plugin.get("name") == LOW_NODE_LOAD and point == "balance":
                found = at
            else:
                report.add([dropped(at, f"Of koordinator's plugins {LOW_NODE_LOAD} is converted; left out.")])
        disabled = (*plugins[0], point, "disabled")
        report.add([dropped(disabled, "Nothing is enabled by default here; left out.")])
    return found


def _object(given: Given, key: str) -> Given:
    at, value = (*given[0], key), given[1].get(key)
    if value is None:
        return at, {}
    if not isinstance(value, dict):
        raise ConfigurationError(path_text(at), "must be an object")
    return at, value


def _objects(given: Given, key: str) -> list[Given]:
    at, value = (*given[0], key), given[1].get(key) or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ConfigurationError(path_text(at), "must be a list of objects")
    return [((*at, number), each) for number, each in enumerate(value)]
