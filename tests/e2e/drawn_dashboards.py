"""Draws the dashboards with what a Prometheus has, for people to look at; it is no Grafana.

A page a dashboard: its grid, and in each panel the results of its queries as Grafana would lay them out, with
legends and units. A panel without a result is marked.
"""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING, Any

from pygal.style import Style

from charts import pygal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from e2e.prometheus import Prometheus

#: Seconds that the lines show, and between two of their points.
SHOWN_S, STEP_S = 150, 2
#: Height of a unit of Grafana's grid, in pixels, and most series with a legend.
UNIT_PX, MOST_NAMED = 34, 6

PAGE = """<!doctype html><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px sans-serif; margin: 12px; background: #f4f5f5; }}
main {{ display: grid; grid-template-columns: repeat(24, 1fr); gap: 6px; }}
section {{ background: #fff; border: 1px solid #ddd; padding: 6px; overflow: hidden; }}
section.row {{ background: none; border: 0; }} section.row h2 {{ font-size: 16px; }}
h2 {{ font-size: 13px; margin: 0 0 4px; }} b {{ font-size: 26px; margin-right: 12px; }}
.empty {{ background: #fdd; }} td, th {{ padding: 2px 8px; text-align: left; font-size: 12px; }}
</style><h1>{title}</h1><main>{panels}</main>"""


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A value with its unit, as short as Grafana writes it."""
    if decimals is not None:
        return f"{value:.{decimals}f}"
    if unit == "s":
        return f"{value * 1000:.3g} ms" if abs(value) < 1 else f"{value:.3g} s"
    if unit == "bytes":
        return f"{value / 2**20:.0f} MiB"
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    return f"{value:.4g}{ {'percent': ' %', 'ops': '/s', 'reqps': '/s'}.get(unit, '') }"


def named(legend: str, labels: Mapping[str, str]) -> str:
    """The legend of a series."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), legend).strip()


def lines(series: Mapping[str, list[tuple[float, float]]], unit: str, height: int) -> str:
    """Lines over time, from zero: noise of floating point would be a scale of its own."""
    highest = max(value for points in series.values() for _, value in points)
    chart = pygal.XY(
        range=(0, highest if highest > 1e-6 else 1),
        style=Style(background="white", plot_background="white", label_font_size=11, legend_font_size=11),
        width=560,
        height=height - 30,
        dots_size=1,
        show_legend=len(series) <= MOST_NAMED,
        legend_at_bottom=True,
        legend_at_bottom_columns=3,
        show_x_labels=False,
        truncate_legend=32,
        value_formatter=lambda value: shown(value, unit),
        js=(),
    )
    for name, points in sorted(series.items()):
        chart.add(name or "value", points)
    return str(chart.render(is_unicode=True, disable_xml_declaration=True))


def rows(results: list[dict[str, Any]]) -> str:
    """A table of the series, a column for each label."""
    labels = sorted({label for each in results for label in each["metric"]} - {"__name__"})
    head = "".join(f"<th>{escape(label)}" for label in (*labels, "value"))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(each['metric'].get(label, ''))}" for label in labels)
        + f"<td>{each['value'][1]}"
        for each in results
    )
    return f"<table><tr>{head}{body}</table>"


async def drawn(server: Prometheus, panel: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """The inside of a panel; empty without results."""
    unit, decimals = (panel["fieldConfig"]["defaults"].get(each) for each in ("unit", "decimals"))
    series: dict[str, list[tuple[float, float]]] = {}
    results: list[dict[str, Any]] = []
    for target in panel["targets"]:
        query = target["expr"]
        for name, value in variables.items():
            query = query.replace(name, value)
        if panel["type"] != "timeseries":
            found = (await server.ask("/api/v1/query", query=query))["data"]["result"]
            results += [
                {**each, "name": named(target["legendFormat"], each["metric"])}
                for each in found
                if each["value"][1] != "NaN"
            ]
            continue
        now = float((await server.ask("/api/v1/query", query="time()"))["data"]["result"][0])
        answer = await server.ask(
            "/api/v1/query_range", query=query, start=str(now - SHOWN_S), end=str(now), step=str(STEP_S)
        )
        for each in answer["data"]["result"]:
            points = [
                (float(at), float(value)) for at, value in each["values"] if value not in ("NaN", "+Inf")
            ]
            if points:
                series[named(target["legendFormat"], each["metric"])] = points
    if panel["type"] == "timeseries":
        return lines(series, unit, panel["gridPos"]["h"] * UNIT_PX) if series else ""
    if panel["type"] == "table":
        return rows(results) if results else ""
    return "".join(
        f"<b>{shown(float(each['value'][1]), unit, decimals)}</b>{escape(each['name'])} " for each in results
    )


async def page(server: Prometheus, document: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """The page of a dashboard."""
    panels = []
    for panel in document["panels"]:
        at, is_row = panel["gridPos"], panel["type"] == "row"
        inside = "" if is_row else await drawn(server, panel, variables)
        kind = "row" if is_row else "" if inside else "empty"
        place = f"grid-column: {at['x'] + 1} / span {at['w']}; grid-row: {at['y'] + 1} / span {at['h']};"
        least = "" if is_row else f" min-height: {at['h'] * UNIT_PX}px;"
        heading = f"<h2>{escape(panel['title'])}</h2>"
        panels.append(f'<section class="{kind}" style="{place}{least}">{heading}{inside}</section>')
    return PAGE.format(title=escape(document["title"]), panels="".join(panels))


async def draw(
    server: Prometheus, dashboards: list[Path], variables: Mapping[str, str], folder: Path
) -> None:
    """Write a page for each dashboard into a folder."""
    for path in dashboards:
        text = await page(server, json.loads(path.read_text(encoding="utf-8")), variables)
        written(folder / f"{path.stem}.html", text)


def written(file: Path, text: str) -> None:
    """Write a file, and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
