"""Writes docs/metrics.md from the registry: ``python -m pages.metrics docs/metrics.md``.

``make docs`` writes the page, and a test fails when it lags behind.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Metric

from pages.metric_counterparts import counterparts_table, kube_scheduler_table
from plimsoll.telemetry.process import ProcessMetrics
from plimsoll.telemetry.rebalancing import RebalancingMetrics
from plimsoll.telemetry.scheduling import MetricsObserver
from plimsoll.telemetry.scraped_state import Sources, StateCollector

HEAD = """# Metrics

`plimsoll run` answers Prometheus on `--metrics-port` (8081) at `/metrics`. Where kube-scheduler has
`scheduler_x`, Plimsoll has `plimsoll_scheduler_x` with the same meaning, so that dashboards and
alerts on these need only the prefix; the last table names those that have none.
No label names a pod or a node. The usual `process_…` and `python_…` metrics are there, too.

Written by `make docs` from the code: change that.

"""

#: The last words of a name say what it counts in.
UNITS = {"seconds": "seconds", "bytes": "bytes", "percentage_points": "percentage points"}

#: How a collector that is asked at scrape names its labels; it has no samples before it was asked.
_NOTHING = Sources(
    queues=dict,
    cache=dict,
    rejections=list,
    in_flight=int,
    calls=dict,
    events_dropped=int,
    tasks=int,
    conditions=list,
    degraded=list,
    stalled=dict,
    runs=dict,
    load=lambda: None,
    maintenances=list,
    unhealthy=dict,
    prices=dict,
    shares=list,
    groups=list,
)


def families() -> list[tuple[Metric, tuple[str, ...]]]:
    """Every metric of ours with its labels, sorted."""
    registry = CollectorRegistry()
    MetricsObserver(registry)
    ProcessMetrics(registry)
    RebalancingMetrics(registry)
    registry.register(StateCollector(_NOTHING))
    found: dict[str, tuple[Metric, tuple[str, ...]]] = {}
    collectors: Iterable[Any] = registry._collector_to_names  # noqa: SLF001 - it lists them nowhere else
    for each in collectors:
        for family in each.describe():
            labels = getattr(family, "_labelnames", ()) or getattr(each, "_labelnames", ())
            found[family.name] = family, tuple(labels)
    return [found[name] for name in sorted(found)]


def page(metrics: Iterable[tuple[Metric, tuple[str, ...]]]) -> str:
    """The page, in Markdown."""
    rows = [
        f"| `{_exposed(family)}` | {family.type} | {', '.join(f'`{label}`' for label in labels) or 'none'} | "
        f"{_unit(family)} | {family.documentation} |"
        for family, labels in metrics
    ]
    return (
        HEAD
        + "| Name | Type | Labels | Unit | Meaning |\n| --- | --- | --- | --- | --- |\n"
        + "\n".join(rows)
        + "\n"
        + counterparts_table()
        + kube_scheduler_table()
    )


def _exposed(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def _unit(family: Metric) -> str:
    return next((unit for ending, unit in UNITS.items() if family.name.endswith(f"_{ending}")), "1")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(families()), encoding="utf-8")
