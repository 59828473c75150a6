"""Converts third-party plugins that place by load to NodeLoad: koordinator's, Trimaran's, Crane's.

Source: koordinator a7a1b76b, ``loadaware/config``; scheduler-plugins 903da7df, ``trimaran``; crane-scheduler
c2c05338, ``dynamic``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from plimsoll.migration.documents import Path
from plimsoll.migration.report import Note, carried, differs, dropped

NODE_LOAD = "NodeLoad"

#: Names of the plugins, with their scoring strategy; None: the plugin need not set one.
BY_LOAD: Mapping[str, str | None] = {
    "LoadAwareScheduling": None,
    "TargetLoadPacking": "TargetUsed",
    "LoadVariationRiskBalancing": "LowVariation",
    "Dynamic": None,
}

#: Extension points of NodeLoad; it does not need the plugins' other points.
POINTS = ("multiPoint", "preFilter", "filter", "score")

#: Arguments with the same name in NodeLoad.
CARRIED = (
    "resourceWeights",
    "dominantResourceWeight",
    "usageThresholds",
    "enableScheduleWhenNodeMetricsExpired",
    "targetUtilization",
    "safeVarianceMargin",
    "safeVarianceSensitivity",
)

_SOURCE = (
    "The operator reads metrics.k8s.io by itself; spec.rebalancing.metricsProviders names other sources."
)
_BOOK = (
    "The load book estimates pods by what they and their predecessors used, and by a share of the request."
)

#: Reasons for which arguments are left out.
LEFT_OUT = {
    "watcherAddress": _SOURCE,
    "metricProvider": _SOURCE,
    "policyConfigPath": "Annotations are not read; loads are smoothed with a half-life of ten minutes.",
    "defaultRequests": _BOOK,
    "defaultRequestsMultiplier": _BOOK,
    "estimatedScalingFactors": _BOOK,
    "estimator": _BOOK,
    "estimatedSecondsAfterPodScheduled": _BOOK,
    "estimatedSecondsAfterInitialized": _BOOK,
    "nodeMetricExpirationSeconds": "A reading counts for three of its source's intervals.",
    "prodUsageThresholds": "Lines hold for pods of every priority.",
    "scoreAccordingProdUsage": "Scores are the same for pods of every priority.",
}


def load_args(name: str, args: Mapping[str, Any], at: Path, target: str, notes: list[Note]) -> dict[str, Any]:
    """The arguments of NodeLoad for one of the plugins; a note for each argument."""
    found: dict[str, Any] = {}
    strategy = BY_LOAD[name]
    if strategy is not None:
        found["scoringStrategy"] = {"type": strategy}
    notes += _notes(args, at, target, found)
    if name == "LoadAwareScheduling" and "usageThresholds" not in args and "aggregated" not in found:
        sentence = "LoadAwareScheduling refuses above 65 % of cpu and 95 % of memory; NodeLoad only if asked."
        notes.append(differs(f"{target}.args.usageThresholds", sentence))
    return found


def _notes(args: Mapping[str, Any], at: Path, target: str, found: dict[str, Any]) -> Iterator[Note]:
    for key, value in args.items():
        where = (*at, "args", key)
        if key in CARRIED:
            found[key] = value
            yield carried(where, f"{target}.args.{key}")
        elif key == "aggregated" and isinstance(value, Mapping) and value.get("usageThresholds"):
            found[key] = {"usageThresholds": value["usageThresholds"]}
            yield carried(
                where, f"{target}.args.{key}", "Any percentile is the node's expected peak; p95 is meant."
            )
        else:
            yield dropped(where, LEFT_OUT.get(key, "NodeLoad has nothing like it."))
