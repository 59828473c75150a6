"""Reports for tests: a plan that moves pods, one with hostile names, and a large one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cli.commands import say
from cli.planning_scenes import a_rebalancing, crowded, past, policies, saved, scheduled
from inspection.contents import a_node_document, a_pod_document, a_policy_document
from plimsoll.web_pages.heat_map import HeatMap, Tile
from plimsoll.web_pages.move_arrows import move_arrows
from plimsoll.web_pages.rack_bars import BarPart, RackBar, RackBars
from plimsoll.web_pages.report import PodsForReason, Report, ReportSection, ReportTable
from plimsoll.web_pages.time_line import time_line

if TYPE_CHECKING:
    from pathlib import Path

    from inspection.contents import Document

#: Names that would be markup if a page took them for that.
SCRIPT = "<script>document.title='owned'</script>"
IMAGE = '"><img src=x onerror="document.title=\'owned\'">'
LONG = "n" * 253

SIX_HOURS = ("--until", "6h")


def report_of(folder: Path, command: str, *documents: Document, more: tuple[str, ...] = ()) -> Path:
    """The page that a command writes about these objects."""
    source = str(folder / saved(folder, *documents))
    page = folder / f"{command}.html"
    cluster = (source,) if command == "replay" else ("--from", source)
    said = say(command, *cluster, "--report", str(page), *more)
    assert said.code in (0, 2), said
    assert page.name in said.err
    return page


def a_plan(folder: Path) -> Path:
    """A move, pods that stay, policies that do not run, and a pod that waits."""
    waiting = a_pod_document("web-big", cpu="64", owner="big")
    return report_of(folder, "plan", *crowded(), waiting, *policies(), *past())


def a_replay(folder: Path) -> Path:
    """Six hours in which a limit and a budget keep pods where they are, and a pod waits."""
    often = scheduled(rebalancing=a_rebalancing("RemoveDuplicates", schedule={"intervalSeconds": 600}))
    low = {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}}}
    watched = a_policy_document("watched", rebalancing=a_rebalancing(low, mode="DryRun", anomalyRounds=3))
    waiting = a_pod_document("web-big", cpu="64", owner="big")
    return report_of(folder, "replay", *crowded(), waiting, often, watched, more=SIX_HOURS)


def a_hostile_page(folder: Path) -> Path:
    """Markup in every place where a page says what a cluster said, and names as long as names can be."""
    names = (SCRIPT, IMAGE, LONG, "</script><b>")
    tiles = [Tile(each, 10.0, 120.0) for each in names]
    table = ReportTable(SCRIPT, names, frozenset({1}), [names, names])
    section = ReportSection(
        SCRIPT,
        [*names, table],
        maps=[HeatMap(SCRIPT, tiles)],
        arrows=move_arrows((source, target) for source in names for target in names),
        racks=RackBars(SCRIPT, [RackBar(each, [BarPart(each, 0, "A", 0, 400)], each) for each in names], 3),
        lines=[time_line(SCRIPT, [(each, [(0, 1.0), (9, 3.0)]) for each in names])],
        waiting=[PodsForReason(each, 9, names) for each in names],
    )
    page = folder / "hostile.html"
    index = {
        "nodes": names,
        "shapes": [SCRIPT],
        "owners": [SCRIPT],
        "budgets": [SCRIPT],
        "pods": [(f"hostile/{each}", place, 0, 0, 0) for place, each in enumerate(names)],
        "stays": {SCRIPT: [SCRIPT]},
        "leftOut": 0,
    }
    texts = dict.fromkeys(names, SCRIPT)
    report = Report(SCRIPT, IMAGE, LONG, SCRIPT, [section], texts, [(SCRIPT, IMAGE)], index, IMAGE)
    page.write_text(report.html())
    return page


def a_long_page(folder: Path) -> Path:
    """A table of thirty rows."""
    table = ReportTable(
        "", ["POD", "WHY"], frozenset(), [(f"shop/web-{row}", "it waits") for row in range(30)]
    )
    page = folder / "long.html"
    page.write_text(Report("Long", "cluster", "", "plimsoll", [ReportSection("Pods", [table])]).html())
    return page


def a_large_cluster(nodes: int, pods: int) -> list[Document]:
    """Nodes of 64 cores, unevenly filled."""
    draw = random.Random(7)
    names = [f"node-{each:04}.eu-central-1.compute.internal" for each in range(nodes)]
    found = [a_node_document(each, cpu="64", memory="256Gi") for each in names]
    for each in range(pods):
        place = min(int(draw.expovariate(4 / nodes)), nodes - 1)
        found.append(a_pod_document(f"service-{each % 300}-{each:05}", names[place], owner=f"s-{each % 300}"))
    return found
