"""Writes the dashboards for Grafana from panels.yaml in the same folder: ``python build.py``."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import count, groupby
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
Obj = dict[str, Any]

#: Grafana's grid is 24 wide: how many panels share a line at most, by kind, and their height.
SHARING = {"stat": 4, "timeseries": 3, "table": 2}
HEIGHT = {"stat": 4, "timeseries": 8, "table": 8}

SOURCE: Obj = {"type": "prometheus", "uid": "${datasource}"}
CLUSTER = "label_values(plimsoll_build_info, cluster)"
JOB = 'label_values(plimsoll_leader_election_master_status{cluster=~"$cluster"}, job)'

#: Marks on the time axis of each dashboard.
MOVES = {
    "name": "Moves",
    "datasource": SOURCE,
    "enable": True,
    "iconColor": "blue",
    "step": "60s",
    "expr": "sum by (cluster, policy, strategy)"
    ' (increase(plimsoll_rebalancer_records_total{cluster=~"$cluster",job=~"$job",phase="Evicted"}[1m])) > 0',
    "titleFormat": "{{policy}} moves pods",
    "textFormat": "{{strategy}} {{cluster}}",
    "tagKeys": "cluster,policy",
}

#: How conditions are shown: the value of a series is 1 or 0.
STATES = [{"type": "value", "options": {"0": {"text": "False"}, "1": {"text": "True"}}}]


def dashboards() -> dict[str, str]:
    """The JSON of each dashboard by file name."""
    described = yaml.safe_load((HERE / "panels.yaml").read_text(encoding="utf-8"))
    return {
        f"{_slug(title)}.json": json.dumps(_dashboard(title, one), indent=1, ensure_ascii=False) + "\n"
        for title, one in described.items()
    }


def _slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def _dashboard(title: str, described: Mapping[str, Any]) -> Obj:
    return {
        "uid": f"plimsoll-{_slug(title)}",
        "title": f"Plimsoll / {title}",
        "tags": ["plimsoll"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "links": [{"type": "dashboards", "tags": ["plimsoll"], "title": "Plimsoll", "asDropdown": True}],
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                *(
                    _variable(name, query)
                    for name, query in {"cluster": CLUSTER, "job": JOB, **described["variables"]}.items()
                ),
            ]
        },
        "annotations": {"list": [MOVES]},
        "panels": list(_panels(described["rows"])),
    }


def _variable(name: str, query: str) -> Obj:
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": query,
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*" if name == "cluster" else ".+",  # one cluster needs no label
        "current": {"text": "All", "value": "$__all"},
    }


def _panels(rows: Mapping[str, Mapping[str, Obj]]) -> Iterator[Obj]:
    """Row after row, and in it line after line of panels of a kind, as wide as the row."""
    number, top = count(1), 0
    for heading, panels in rows.items():
        yield {
            "id": next(number),
            "type": "row",
            "title": heading,
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
        }
        top += 1
        for kind, alike in groupby(panels.items(), lambda each: each[1].get("kind", "timeseries")):
            shown = list(alike)
            width = 24 // _sharing(len(shown), SHARING[kind])
            for position, (title, panel) in enumerate(shown):
                line, column = divmod(position, 24 // width)
                place = {"x": column * width, "y": top + line * HEIGHT[kind], "w": width, "h": HEIGHT[kind]}
                yield _panel(next(number), title, kind, panel, place)
            top += -(-len(shown) * width // 24) * HEIGHT[kind]


def _sharing(panels: int, most: int) -> int:
    """How many panels share a line such that the last line has about as many."""
    lines = -(-panels // most)
    return max(-(-panels // lines), 2)


def _panel(number: int, title: str, kind: str, panel: Mapping[str, Any], place: Obj) -> Obj:
    queries = panel.get("queries") or {panel.get("legend", title): panel["query"]}
    instant = {"instant": True, "format": "table"} if kind == "table" else {}
    defaults = {"unit": panel.get("unit", "none"), "min": 0}
    if defaults["unit"] == "none" and any("increase(" in query for query in queries.values()):
        defaults["decimals"] = 0  # an increase is extrapolated; moves and pods are counted
    more: Obj = {}
    if kind == "table":
        defaults["mappings"] = STATES
        hidden = {"excludeByName": {"Time": True}}
        more["transformations"] = [{"id": "organize", "options": hidden}]
    return {
        "id": number,
        "type": kind,
        "title": title,
        "description": panel.get("help", ""),
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        **more,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "expr": of_clusters(query),
                "legendFormat": f"{legend} {{{{cluster}}}}",
                **instant,
            }
            for index, (legend, query) in enumerate(queries.items())
        ],
    }


def of_clusters(query: str) -> str:
    """The query of the chosen clusters, each by itself: a server of metrics may hold many."""
    chosen = query.replace('{job=~"$job"', '{cluster=~"$cluster",job=~"$job"').replace(
        " by (", " by (cluster, "
    )
    return re.sub(r"\b(sum|max|count)\(", r"\1 by (cluster) (", chosen)


if __name__ == "__main__":
    for name, text in dashboards().items():
        (HERE / name).write_text(text, encoding="utf-8")
