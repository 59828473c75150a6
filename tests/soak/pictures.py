"""Draws the curves of a soak as small SVGs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pygal

from book.page import STYLE
from soak.verdict import SERVER, Row, Soaked

#: Points of a line; of several samples that fall together the highest is drawn.
POINTS = 240

Points = list[tuple[float, float | None]]


@dataclass(frozen=True, slots=True)
class Picture:
    """One chart over the minutes of a soak.

    Attributes:
        name: Of the file, without suffix.
        lines: Makes the lines, keyed by their legends.
    """

    name: str
    title: str
    lines: Callable[[Soaked], Mapping[str, Points]]


def drawn(soaked: Soaked, folder: Path) -> None:
    """Write all pictures, from the first rest on."""
    soaked = Soaked(
        [row for row in soaked.processes if row["phase"]],
        [row for row in soaked.cluster if row["phase"]],
        soaked.happenings,
    )
    folder.mkdir(parents=True, exist_ok=True)
    for each in PICTURES:
        (folder / f"{each.name}.svg").write_text(_svg(each, soaked), encoding="utf-8")


def _svg(picture: Picture, soaked: Soaked) -> str:
    chart = pygal.XY(
        style=STYLE,
        js=[],
        title=picture.title,
        width=760,
        height=344,
        explicit_size=True,
        show_dots=False,
        x_title="minutes",
        x_value_formatter=lambda value: f"{value:,.0f}",
        value_formatter=lambda value: f"{value:,.5g}",
        include_x_axis=True,
        truncate_legend=-1,
        legend_at_bottom=True,
        legend_at_bottom_columns=3,
        margin_bottom=36,  # pygal leaves no room for the legend below the title of the axis
        max_scale=6,
        no_prefix=True,
        stroke_style={"width": 1.2},
        allow_interruptions=True,
    )
    for legend, points in picture.lines(soaked).items():
        chart.add(legend, points)
    text = re.sub(r"<!--.*?-->|<script.*?</script>", "", chart.render(is_unicode=True), flags=re.DOTALL)
    return re.sub(r"(\d+\.\d)\d+", r"\1", text) + "\n"  # a tenth of a pixel is enough


def _thinned(points: Sequence[tuple[float, float]]) -> Points:
    if not points:
        return []
    width = max(points[-1][0] / POINTS, 1 / 6)
    slots: dict[int, tuple[float, float]] = {}
    for minute, value in points:
        slot = int(minute / width)
        slots[slot] = max(slots.get(slot, (minute, value)), (minute, value), key=lambda point: point[1])
    return list(slots.values())


def _curve(rows: Iterable[Row], column: str, scale: float = 1.0) -> Points:
    return _thinned([(float(row["at_s"]) / 60, float(row[column]) * scale) for row in rows if row[column]])


def _of_lives(soaked: Soaked, name: str, column: str, scale: float = 1.0) -> Points:
    """The curve of a replica, interrupted where a life ends."""
    found: Points = []
    mine = [row for row in soaked.processes if row["name"] == name]
    for life in sorted({int(row["life"]) for row in mine}):
        points = _curve([row for row in mine if row["life"] == str(life)], column, scale)
        if found and points:
            found.append((points[0][0], None))
        found += points
    return found


def _replicas(column: str, scale: float = 1.0) -> Callable[[Soaked], Mapping[str, Points]]:
    def lines(soaked: Soaked) -> Mapping[str, Points]:
        return {name: _of_lives(soaked, name, column, scale) for name in ("replica-a", "replica-b")}

    return lines


def _counts(soaked: Soaked) -> Mapping[str, Points]:
    return {
        f"{column}, {name}": _of_lives(soaked, name, column)
        for column in ("files", "tasks", "threads")
        for name in ("replica-a", "replica-b")
    }


def _of_leader(column: str, legend: str, scale: float = 1.0) -> Callable[[Soaked], Mapping[str, Points]]:
    def lines(soaked: Soaked) -> Mapping[str, Points]:
        return {legend: _curve([row for row in soaked.processes if row["leads"] == "1"], column, scale)}

    return lines


def _together(
    *parts: Callable[[Soaked], Mapping[str, Points]],
) -> Callable[[Soaked], Mapping[str, Points]]:
    return lambda soaked: {legend: points for part in parts for legend, points in part(soaked).items()}


def _cluster(**legends: str) -> Callable[[Soaked], Mapping[str, Points]]:
    return lambda soaked: {legend: _curve(soaked.cluster, column) for column, legend in legends.items()}


def _server(soaked: Soaked) -> Mapping[str, Points]:
    mine = [row for row in soaked.processes if row["name"] == SERVER]
    return {
        "resident memory, MiB": _curve(mine, "rss_mib"),
        "events / 10": _curve(
            [{**row, "events": str(int(row["events"]) / 10)} for row in soaked.cluster], "events"
        ),
    }


PICTURES = (
    Picture("soak-memory", "Resident memory of the replicas, MiB", _replicas("rss_mib")),
    Picture("soak-counts", "Open files, asyncio tasks, threads", _counts),
    Picture(
        "soak-queues",
        "Pods that wait, and open moves",
        _together(
            _of_leader("active", "active"),
            _of_leader("backoff", "backoff"),
            _of_leader("unschedulable", "unschedulable"),
            _cluster(waiting="without a node", open_records="open records"),
        ),
    ),
    Picture(
        "soak-records",
        "Eviction records",
        _cluster(records_enforced="policy in mode Enforce", records_predicted="policy in mode DryRun"),
    ),
    Picture(
        "soak-latency",
        "Seconds from a pod's first entry into the queue to its binding",
        _together(
            _of_leader("schedule_p99_s", "99th percentile of ten seconds"),
            _of_leader("schedule_p50_s", "median"),
        ),
    ),
    Picture(
        "soak-load",
        "Pod events and API requests a second, CPU of the leader",
        _together(
            _of_leader("pod_events_per_s", "pod events/s"),
            _of_leader("requests_per_s", "requests/s"),
            _of_leader("cpu_share", "% of a core", 100.0),
        ),
    ),
    Picture("soak-server", "The development cluster", _server),
)
