"""Pictures without a browser: heights of bars, arrows, curves, and a page's size."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.commands import say
from cli.planning_scenes import a_rebalancing, crowded, past, policies, scheduled
from inspection.contents import a_node_document, a_pod_document, content_of
from plimsoll.cli.reports import _command, _source
from plimsoll.inspection.picture import PicturedNode, picture_of
from plimsoll.inspection.refusal_reasons import remedy_of
from plimsoll.inspection.state import ClusterState
from plimsoll.web_pages.heat_map import OVER, STEPS, Changes, HeatMap, Tile, heat_maps, step_of
from plimsoll.web_pages.move_arrows import CHARACTER, DRAWN, LEFT, RIGHT, move_arrows
from plimsoll.web_pages.pod_index import MOST_BYTES, pod_index
from plimsoll.web_pages.time_line import POINTS, time_line
from web_pages.scenes import SCRIPT, a_hostile_page, a_large_cluster, a_plan, a_replay, report_of

if TYPE_CHECKING:
    from pathlib import Path


@given(st.floats(0, 1e6))
def test_a_bar_is_empty_only_when_nothing_is_taken_and_striped_only_above_all(percent: float) -> None:
    assert (step_of(percent) == 0) == (percent == 0)
    assert (step_of(percent) == OVER) == (percent > 100)
    assert step_of(percent) <= STEPS or percent > 100


def test_a_picture_has_each_node_and_groups_what_waits() -> None:
    """Percent of allocatable by resource; extended resources come last; pods by the reason."""
    gpu = a_node_document("gpu")
    gpu["status"]["allocatable"] = {**gpu["status"]["allocatable"], "example.com/gpu": "4"}
    documents = [
        *crowded(),
        gpu,
        a_node_document("shut", unschedulable=True),
        *(a_pod_document(f"big-{each}", cpu="64", owner="big") for each in "ab"),
    ]

    picture = picture_of(ClusterState.of(content_of(documents)))

    assert [each.node for each in picture.nodes] == ["gpu", "new-1", "new-2", "old", "shut"]
    assert picture.resources == ("cpu", "memory", "pods", "example.com/gpu")
    old, shut = picture.nodes[3:]
    assert old == PicturedNode(
        node="old",
        state="Ready",
        pods=5,
        requested_percent={"cpu": 62.5, "memory": 0.0, "pods": 4.5},
        used_percent={},
    )
    assert shut.state == "Cordoned"
    assert (picture.spent_budgets, picture.pods, picture.placeable) == (1, 5, 0)
    (group,) = picture.waiting
    assert group.pods == ("shop/big-a", "shop/big-b")
    assert "Insufficient cpu" in group.reason


def test_pods_whose_scheduler_nothing_runs_are_in_no_tile_of_those_that_would_fit(tmp_path: Path) -> None:
    """The table and the tiles count them as pods without a place, with the reason."""
    lost = a_pod_document("lost", cpu="500m", schedulerName="plimsol", owner="lost")
    page = report_of(tmp_path, "plan", *crowded(), lost, scheduled()).read_text()

    text = " ".join(re.sub(r"<[^>]*>", " ", unescape(page)).split())
    assert "would find a place" not in text
    assert "pods without a place 1" in text
    assert 'no scheduler is known that serves schedulerName "plimsol"' in text


@pytest.mark.parametrize("command", ["plan", "history", "whatif"])
def test_a_page_can_be_mailed(tmp_path: Path, command: str) -> None:
    """Its verdict is a sentence, its figures are few, and neither folders nor addresses are in it."""
    more = ("--drain", "old") if command == "whatif" else ()
    page = report_of(tmp_path, command, *crowded(), *policies(), *past(), more=more).read_text()

    (verdict,) = re.findall(r'<p class="verdict">([^<]+)</p>', page)
    assert re.search(r"[a-z] [a-z]", verdict)
    assert page.count("<dd>") == (6 if command == "history" else 3)
    assert str(tmp_path) not in page


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("https://10.0.0.1:6443", "a live cluster"),
        ("/home/jane/cluster.plimsoll", "cluster.plimsoll"),
        ("/home/jane/a.json and 2 more", "a.json and 2 more"),
    ],
)
def test_a_source_has_neither_folder_nor_address(source: str, shown: str) -> None:
    assert _source(source) == shown


def test_a_command_leaves_out_what_names_a_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "new.yaml"
    file.write_text("")
    words = ["--kubeconfig", "/home/jane/config", "-f", str(file), "--context=prod", f"--against={file}"]
    monkeypatch.setattr("sys.argv", ["/opt/bin/plimsoll", "plan", *words, "--report", "/tmp/page.html"])

    assert _command() == "plimsoll plan -f new.yaml --against=new.yaml"


def test_a_map_has_what_changes_what_comes_and_what_goes() -> None:
    picture = picture_of(ClusterState.of(content_of(crowded())))
    after: Changes = {
        "old": {("cpu", "requests"): 50.0},
        "new-1": {("cpu", "requests"): None},
        "added": {("cpu", "requests"): 3.0},
    }

    cpu, memory, pods = heat_maps(picture, after)

    assert [each.label for each in cpu.tiles] == [
        "new-1: 0.0 % → removed",
        "new-2: 0.0 %",
        "old: 62.5 % → 50.0 %",
        "added: new → 3.0 %",
    ]
    assert (memory.title, pods.title) == ("memory requested", "pods requested")
    assert len(pods.tiles) == 3


def test_frames_mark_tiles_that_change_unless_most_of_many_do() -> None:
    """Where each tile had a frame, none would be found by it."""
    same, other = Tile("a", 1.0, 1.0), Tile("b", 1.0, 2.0)

    assert HeatMap("cpu requested", [same, other, other]).framed
    assert HeatMap("cpu requested", [same, other] * 50).framed
    assert not HeatMap("cpu requested", [same, other, other] * 50).framed


def tiles_of(page: Path) -> set[str]:
    """The labels of all tiles of a page."""
    return set(re.findall(r'class="tile[^>]* aria-label="([^"]*)"', unescape(page.read_text())))


def test_the_map_of_a_change_begins_where_its_json_begins(tmp_path: Path) -> None:
    """Without pods that wait and would find a place; of resources that the answer has."""
    waiting = [a_pod_document(f"small-{each}", cpu="500m", owner="small") for each in "ab"]
    page = report_of(tmp_path, "whatif", *crowded(), *waiting, scheduled(), more=("--drain", "old"))
    cluster = str(tmp_path / "cluster.plimsoll")
    answer = json.loads(say("whatif", "--from", cluster, "--drain", "old", "-o", "json").out)

    begins = {
        f"{node['node']}: {100 * use['cpuMilli'] / use['cpuMilliAllocatable']:.1f} %"
        for node in answer["nodes"]
        if (use := node.get("before"))
    }
    assert len(begins) > 1
    assert all(each.startswith("old") or each.endswith(" 0.0 %") for each in begins)
    assert begins <= {f"{label.split(' %')[0]} %" for label in tiles_of(page)}
    titles = re.findall(r'data-map="([^"]*)"', page.read_text())
    assert titles == ["cpu requested", "memory requested", "pods requested"]


def test_a_replay_shows_its_nodes_at_the_beginning_and_at_the_end(tmp_path: Path) -> None:
    """Each tile has the figures of the JSON, and opens them."""
    waiting = a_pod_document("web-small", cpu="500m", owner="web")
    page = report_of(tmp_path, "replay", *crowded(), waiting, scheduled(), more=("--until", "2h"))
    cluster = str(tmp_path / "cluster.plimsoll")
    (outcome,) = json.loads(say("replay", cluster, "--until", "2h", "-o", "json").out)["outcomes"]
    _, _, data = page.read_text().partition('id="data">')
    explained = json.loads(data.partition("</script>")[0])["explanations"]

    wanted = [(node, node["beforePercent"], node["afterPercent"]) for node in outcome["nodes"]]
    assert any(before != after for _, before, after in wanted)
    assert tiles_of(page) == {
        Tile(node["node"], before[name], after[name]).label
        for node, before, after in wanted
        for name in after
    }
    for node, before, after in wanted:
        assert f"{before['cpu']:g} → {after['cpu']:g} % of its cpu" in explained[node["node"]]


@pytest.mark.parametrize("command", ["plan", "replay"])
def test_regions_have_names_of_their_own(tmp_path: Path, command: str) -> None:
    """Those who hear the page choose among their names."""
    text = (a_plan if command == "plan" else a_replay)(tmp_path).read_text()

    names = re.findall(r'(?:role="region"|data-map="[^"]*") aria-label="([^"]*)"', text)
    assert len(names) > 4
    assert len(names) == len(set(names))


def test_arrows_join_nodes_and_the_rest_is_counted() -> None:
    moves = [("a", "b")] * 3 + [("a", "c")] + [(f"s{each}", f"t{each}") for each in range(DRAWN)]

    drawing = move_arrows(moves)

    assert (drawing.arrows[0].source, drawing.arrows[0].target, drawing.arrows[0].moves) == ("a", "b", 3)
    assert len(drawing.arrows) == DRAWN
    assert sum(each.moves for each in drawing.arrows) + drawing.left_out == len(moves)
    assert dict(drawing.left)["a"] == drawing.arrows[0].start


@pytest.mark.parametrize("name", ["a", "n" * 253])
def test_arrows_are_as_wide_as_the_names_at_their_ends(name: str) -> None:
    """So that a phone shows the first name; of the longest, 47 characters are drawn."""
    drawing = move_arrows([(name, "b")])

    assert LEFT - drawing.begin == round(min(47, len(name)) * CHARACTER)
    assert drawing.begin + drawing.width == RIGHT + round(CHARACTER)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=3 * POINTS))
def test_a_thinned_curve_keeps_its_highest_and_its_last_figure(figures: list[float]) -> None:
    drawing = time_line("pending", [("one", [(at, each) for at, each in enumerate(figures)])])

    (curve,) = drawing.curves
    assert (curve.highest, curve.last) == (max(figures), figures[-1])
    assert len(curve.points.split()) <= POINTS + 2


def a_large_page(folder: Path, nodes: int) -> str:
    """With twenty pods a node, three for ten nodes that wait, and the explanation of every node."""
    folder.mkdir()
    waiting = [
        a_pod_document(f"big-{each}", cpu="65", owner=f"big-{each % 3}") for each in range(nodes * 3 // 10)
    ]
    low = {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 15}, "targetThresholds": {"cpu": 40}}}
    policy = scheduled(rebalancing=a_rebalancing(low))
    documents = (*a_large_cluster(nodes, 20 * nodes), *waiting, policy)
    return report_of(folder, "plan", *documents).read_text()


def test_a_thousand_nodes_fit_into_three_megabytes(tmp_path: Path) -> None:
    """With 20,000 pods: by the growth between a twentieth and a tenth of them."""
    small, large = (a_large_page(tmp_path / str(nodes), nodes) for nodes in (50, 100))
    a_node = (len(large.encode()) - len(small.encode())) / 50

    assert len(large.encode()) + 900 * a_node < 3_000_000
    _, _, data = large.partition('id="data">')
    index = json.loads(data.partition("</script>")[0])["index"]
    assert (len(index["pods"]), index["leftOut"]) == (2_000, 0)
    assert 10 * len(json.dumps(index["pods"])) < MOST_BYTES


def test_an_index_of_pods_ends_at_its_bound_and_begins_with_what_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows name node, shape, owner and budget; pods that have no room are counted."""
    state = ClusterState.of(content_of([*crowded(), a_pod_document("first", "new-1")]))
    monkeypatch.setattr("plimsoll.web_pages.pod_index.MOST_BYTES", 100)

    index = pod_index(state, first={"new-1"})

    names = [row[0] for row in index["pods"]]
    assert names[0] == "shop/first"
    assert len(names) + index["leftOut"] == 6
    assert 1 < len(names) < 6


def test_a_page_asks_for_nothing_and_allows_its_own_script_alone(tmp_path: Path) -> None:
    """No address of any host, no inline handler or style; markup of a cluster is text."""
    text = a_hostile_page(tmp_path).read_text()

    assert "default-src 'none'" in unescape(text)
    assert "unsafe" not in text
    assert "http://" not in text
    assert "https://" not in text
    assert " style=" not in text
    assert SCRIPT not in text
    assert text.count("<script") == 2


def test_a_replay_shows_the_figures_of_its_json(tmp_path: Path) -> None:
    """Each curve's highest and last figure, and pods without a node by their reason."""
    waiting = [a_pod_document(f"big-{each}", cpu="64", owner="big") for each in "ab"]
    page = report_of(tmp_path, "replay", *crowded(), *waiting, scheduled(), more=("--until", "2h"))
    text = unescape(page.read_text())
    cluster = str(tmp_path / "cluster.plimsoll")
    (outcome,) = json.loads(say("replay", cluster, "--until", "2h", "-o", "json").out)["outcomes"]

    for title, name in (
        ("cpu requested, %", "cpuPercent"),
        ("memory requested, %", "memoryPercent"),
        ("pending pods", "pending"),
        ("nodes in use", "nodesInUse"),
        ("evictions so far", "evicted"),
    ):
        figures = [each[name] for each in outcome["utilisation"]]
        _, _, curve = text.partition(f"<strong>{title}</strong>")
        assert f"snapshot: highest {max(figures):g}, at the end {figures[-1]:g}</span>" in curve[:400]
    (group,) = outcome["pendingReasons"]
    assert (group["count"], group["pods"]) == (2, ["shop/big-a", "shop/big-b"])
    assert "Insufficient cpu" in group["reason"]
    assert f"<summary>2 pods: {group['reason']}</summary>" in text


@pytest.mark.parametrize(
    ("command", "more", "words"),
    [
        ("history", ("--since", "100h", "-A"), ["What moved", "most moved", "web-a"]),
        ("replay", ("--until", "2h"), ["What a replay came to", "evictions so far", "<polyline"]),
        ("whatif", ("--drain", "old", "--add-node", "more=new-1"), ["more: new →", "Is placed"]),
    ],
)
def test_each_command_writes_its_page(
    tmp_path: Path, command: str, more: tuple[str, ...], words: list[str]
) -> None:
    page = report_of(tmp_path, command, *crowded(), scheduled(), *past(), more=more)

    text = page.read_text()
    for each in words:
        assert each in text


def test_a_report_says_why_pods_stay_in_the_words_of_the_command(tmp_path: Path) -> None:
    """Each reason with its sentence and its remedy, as the answer for programs has them."""
    text = unescape(a_plan(tmp_path).read_text(encoding="utf-8"))
    (snapshot,) = [each for each in tmp_path.iterdir() if each.suffix != ".html"]
    answer = json.loads(say("plan", "--from", str(snapshot), "-o", "json").out)
    refused = [each for plan in answer["policies"] for each in plan["refused"]]

    assert refused
    for each in refused:
        assert each["reason"] in text
        assert each["message"] in text
        assert remedy_of(each["reason"]) in text


def test_a_verdict_that_begins_with_a_node_keeps_its_name(tmp_path: Path) -> None:
    """new-1, not New-1: the name is what a reader types next."""
    drained = report_of(tmp_path, "whatif", *crowded(), more=("--drain", "new-1"))
    assert '<p class="verdict">new-1 can be drained: ' in drained.read_text(encoding="utf-8")

    scaled = report_of(tmp_path, "whatif", *crowded(), more=("--add-nodes", "1=new-1"))
    assert '<p class="verdict">No pod loses its place' in scaled.read_text(encoding="utf-8")
