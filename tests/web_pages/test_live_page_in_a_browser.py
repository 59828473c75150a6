"""The live page in Chromium with a view of our own: its figures, keyboard, schemes, widths, hostile names.

tests/e2e/test_live_page.py looks at the page of an operator that runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions as expected
from selenium.webdriver.support.wait import WebDriverWait

from plimsoll.app.memory.live_view import (
    LiveChange,
    LiveCondition,
    LiveMaintenance,
    LiveNode,
    LivePod,
    LivePolicy,
    LiveRack,
    LiveRackGroup,
    LiveRecord,
    LiveRefusal,
    LiveSlot,
    LiveView,
)
from plimsoll.model.counted import counted
from web_pages.browser import a_browser, assert_nothing_serious, logged, needs_chromium, opened, resized
from web_pages.page_server import serving
from web_pages.scenes import IMAGE, LONG, SCRIPT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from selenium.webdriver import Chrome

DETAILS = (By.CSS_SELECTOR, "dialog pre")

pytestmark = needs_chromium

#: What the cells of some rows say, whether they are in sight or not.
CONTENTS = """
return [...document.querySelectorAll(arguments[0])]
  .map(row => [...row.querySelectorAll("td")].map(cell => cell.textContent));
"""

#: The class of what has the focus, and the node or pod that it shows.
FOCUSED = """
const {className, dataset} = document.activeElement;
return [className, dataset.node || dataset.pod || ""];
"""

#: Runs before the page's own scripts: it then finds the token of somebody who has signed in.
SIGN_IN = "sessionStorage.setItem('token', 'one')"

#: Where a dialog says what the operator remembers.
PRE = (By.CSS_SELECTOR, "dialog pre")

HOSTILE = (SCRIPT, IMAGE, LONG)


def a_record(pod: str, phase: str, *, words: str = "") -> LiveRecord:
    return LiveRecord(
        record=f"{pod}-1",
        pod=pod,
        source_node="old",
        target_node="new-1",
        policy="tidy",
        strategy="RemoveDuplicates",
        phase=phase,
        message=words,
        why="3 pods are on its node",
        time="2026-01-31T11:56:00Z",
    )


def a_view(nodes: Iterable[LiveNode], pods: Iterable[str], *, words: str) -> LiveView:
    """Pods that wait, a policy in trouble, a move under way and one that ended."""
    made, names = tuple(nodes), tuple(pods)
    condition = LiveCondition(type="Degraded", status="True", reason="UsageSourceSilent", message=words)
    return LiveView(
        standing="leading as plimsoll-0",
        time="2026-01-31T12:00:00Z",
        node_count=len(made),
        pod_count=5,
        is_whole=True,
        nodes=made,
        gone=(),
        depths={"active": 0, "backoff": 1, "unschedulable": len(names), "gated": 0},
        queue=tuple(
            LivePod(
                pod=each,
                queue="unschedulable",
                attempts=7,
                waited_seconds=3725,
                rejected_by=("NodeResourcesFit", "TaintToleration"),
            )
            for each in names
        ),
        reasons={"NodeResourcesFit, TaintToleration": len(names)},
        policies=(
            LivePolicy(
                policy="tidy",
                mode="Enforce",
                last_run="2026-01-31T11:57:00Z",
                next_run="2026-01-31T12:02:00Z",
                last_result="3 candidates: 1 moved",
                moved=41,
                failed=2,
                refused=(LiveRefusal(reason="Budget", count=2, message=words),),
                conditions=(condition,),
            ),
        ),
        maintenances=(
            LiveMaintenance(
                maintenance="kernel",
                phase="Draining",
                drained=1,
                total=3,
                expected_end="2026-01-31T12:30:00Z",
                message=words,
            ),
        ),
        rack_label="example.com/rack",
        rack_count=3,
        racks=tuple(
            LiveRack(
                domain=name,
                nodes=4,
                without=1,
                groups=(LiveRackGroup(group=f"PodGroup {name}", members=9, nodes=3),),
            )
            for name in names
        ),
        moves=(a_record("shop/web-a", "Evicting"),),
        records=(
            a_record("shop/web-c", "Predicted").model_copy(update={"time": "2026-01-31T11:59:00Z"}),
            a_record("shop/web-b", "Settled", words=words),
        ),
        slots=tuple(
            LiveSlot(start=f"2026-01-31T{6 + place // 4:02}:{place % 4 * 15:02}:00Z", settled=place, failed=1)
            for place in range(24)
        ),
        changes=(
            LiveChange(time="2026-01-31T11:00:00Z", policy="tidy", what="Not Paused", message=words),
            LiveChange(time="2026-01-31T10:00:00Z", policy="tidy", what="Paused", message=words),
        ),
    )


def a_node(name: str, place: int = 0) -> LiveNode:
    return LiveNode(
        node=name, pods=place, cpu_percent=10 * place, memory_percent=7 * place, is_open=place != 2
    )


USUAL = a_view(
    [a_node(name, place) for place, name in enumerate(("old", "new-1", "new-2", "new-3"))]
    + [a_node("over-12", 12)],
    ["shop/web-big", "shop/job"],
    words="metrics.k8s.io has not answered for 5 minutes",
)
MARKUP = a_view(
    [a_node(name, place) for place, name in enumerate(HOSTILE)],
    [f"shop/{each}" for each in HOSTILE],
    words=IMAGE,
)


def shown(driver: Chrome, address: str) -> Chrome:
    """The page, with a token and what it shows."""
    script = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SIGN_IN})
    opened(driver, address)
    driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    WebDriverWait(driver, 300).until(lambda found: "placed" in found.find_element(By.ID, "status").text)
    return driver


def rows(driver: Chrome, body: str) -> list[list[str]]:
    """What the cells of a table say, whether they are in sight or not."""
    found: list[list[str]] = driver.execute_script(CONTENTS, f"#{body} tr")
    return found


@pytest.fixture
def driver() -> Iterator[Chrome]:
    with a_browser() as found:
        yield found


def test_its_figures_are_those_of_the_view(driver: Chrome) -> None:
    """Each node, queue, pod, condition and record once, with its figures, and nothing in the console."""
    with serving(USUAL) as (address, asked):
        shown(driver, address)
        said = USUAL.model_dump(by_alias=True)

        assert [each.get_attribute("title") for each in driver.find_elements(By.CSS_SELECTOR, ".tile")] == [
            f"{each['node']}: cpu {each['cpuPercent']} %, memory {each['memoryPercent']} %, "
            f"{counted(each['pods'], 'pod')}{'' if each['isOpen'] else ', closed to new pods'}"
            for each in sorted(said["nodes"], key=lambda each: str(each["node"]))
        ]
        assert len(driver.find_elements(By.CSS_SELECTOR, ".tile .s21")) == 1
        assert "striped above 100 %" in driver.find_element(By.ID, "nodes").text
        assert [each.text for each in driver.find_elements(By.CSS_SELECTOR, "#reasons li")] == [
            f"{count} {name}" for name, count in said["reasons"].items()
        ]
        assert rows(driver, "waiting") == [
            [each["pod"], each["queue"], "1h2m", str(each["attempts"]), ", ".join(each["rejectedBy"])]
            for each in said["queue"]
        ]
        assert "2 domains of 3 of label example.com/rack" in driver.find_element(By.ID, "groups-said").text
        assert [each.text.split("\n") for each in driver.find_elements(By.CSS_SELECTOR, "#racks li")] == [
            [name, f"{letter}", f"{letter} PodGroup {name}: 9 pods; 1 of 4 nodes without a group"]
            for name, letter in (("shop/web-big", "A"), ("shop/job", "B"))
        ]
        bars = driver.find_elements(By.CSS_SELECTOR, "#racks rect:not(.frame)")
        assert [(each.get_attribute("class"), each.get_attribute("width")) for each in bars] == [
            ("g0", "300"),
            ("g1", "300"),
        ]
        words = "metrics.k8s.io has not answered for 5 minutes"
        result = f"{words}; 3 candidates: 1 moved; held back: 2 Budget"
        assert rows(driver, "rows") == [["tidy", "Degraded", "Enforce", "3m ago", "in 2m", "41", "2", result]]
        why, by = "3 pods are on its node", "tidy (RemoveDuplicates)"
        assert rows(driver, "ended") == [
            ["4m ago", "shop/web-a", "old → new-1", "Evicting", why, by],
            ["60s ago", "shop/web-c", "old → new-1", "Predicted", why, by],
            ["4m ago", "shop/web-b", "old → new-1", "Settled", why, by],
        ]
        assert driver.find_element(By.ID, "status").text == (
            "1 policy in trouble\n5 nodes · 5 pods placed · 3 pending · last move 4m ago"
        )
        assert driver.find_element(By.ID, "standing").text == "· leading as plimsoll-0"
        assert logged(driver, "browser") == []
        assert {each for each in asked if each != "/favicon.ico"} == {"/ui", "/explain/live"}


def test_a_standby_shows_no_queue(driver: Chrome) -> None:
    """It is the leader's: what a standby has of it is old."""
    with serving(USUAL.model_copy(update={"standing": "standing by for leading-0_x"})) as (address, _):
        shown(driver, address)

        assert driver.find_element(By.ID, "standby").is_displayed()
        for name, is_shown in (("nodes", True), ("queue", False), ("moves", True)):
            assert driver.find_element(By.ID, name).is_displayed() == is_shown
            assert bool(driver.find_element(By.CSS_SELECTOR, f'nav a[href="#{name}"]').text) == is_shown


def test_a_long_queue_says_that_it_is_longer(driver: Chrome) -> None:
    """A view has a hundred pods at most."""
    many = USUAL.model_copy(update={"depths": {"active": 200, "backoff": 1, "unschedulable": 2, "gated": 0}})
    with serving(many) as (address, _):
        shown(driver, address)

        assert driver.find_element(By.ID, "more").text == "The first 2 of 203."


def test_moves_are_filtered_and_a_filter_is_an_address(driver: Chrome) -> None:
    """By pod, node, policy or outcome; what matches nothing says how to get back."""
    with serving(USUAL) as (address, _):
        shown(driver, address)
        field = driver.find_element(By.ID, "filter")
        field.send_keys("settled")
        assert [each[1] for each in rows(driver, "ended")] == ["shop/web-b"]
        assert "filter=settled" in driver.current_url
        field.send_keys("x")
        assert "Clear the filter" in driver.find_element(By.ID, "ended").text

        shown(driver, f"{address}?filter=web-a")
        assert [each[1] for each in rows(driver, "ended")] == ["shop/web-a"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"conditions": ()}, "Healthy"),
        ({"conditions": (("Paused", "True"),)}, "Moves are stopped"),
        ({"conditions": (("Degraded", "True"),)}, "1 policy in trouble"),
        ({"conditions": (("Accepted", "False"),)}, "1 policy in trouble"),
        ({"conditions": (("Degraded", "False"), ("Ready", "True"))}, "Healthy"),
        ({"conditions": (), "standing": "standing by for a_1"}, "Standby"),
    ],
)
def test_the_first_line_says_whether_all_is_well(
    driver: Chrome, changes: dict[str, Any], expected: str
) -> None:
    """And a stop names who and why."""
    conditions = tuple(
        LiveCondition(type=kind, status=status, reason="Why", message="stopped by jane (freeze)")
        for kind, status in changes["conditions"]
    )
    policy = USUAL.policies[0].model_copy(update={"conditions": conditions})
    update = {"policies": (policy,), "standing": changes.get("standing", USUAL.standing)}
    with serving(USUAL.model_copy(update=update)) as (address, _):
        shown(driver, address)

        assert driver.find_element(By.CSS_SELECTOR, "#status .chip").text == expected
        stopped = driver.find_element(By.ID, "stopped")
        assert stopped.is_displayed() is (expected == "Moves are stopped")
        assert not stopped.is_displayed() or "by jane (freeze)" in stopped.text


def test_what_is_empty_says_the_next_step(driver: Chrome) -> None:
    empty = dict.fromkeys(
        ("policies", "maintenances", "moves", "records", "queue", "nodes", "slots", "changes"), ()
    )
    bare = USUAL.model_copy(update={**empty, "node_count": 0, "reasons": {}})
    with serving(bare) as (address, _):
        shown(driver, address)

        assert "kubectl apply" in driver.find_element(By.ID, "rows").text
        assert "plimsoll plan" in driver.find_element(By.ID, "ended").text
        assert driver.find_element(By.ID, "waiting").text == "No pod waits."
        assert driver.find_element(By.ID, "zones").text == "The cluster has no node."
        assert not driver.find_element(By.ID, "drains").is_displayed()
        assert driver.find_element(By.ID, "changes").text.startswith("No policy was made, stopped")
        assert driver.find_element(By.ID, "hours-said").text.startswith("No move has ended")
        assert not driver.find_element(By.ID, "slots").is_displayed()

    with serving(bare, USUAL) as (address, _):  # the operator had just begun, and then has read the nodes
        shown(driver, address)
        WebDriverWait(driver, 60).until(
            expected.presence_of_element_located((By.CSS_SELECTOR, "#zones .tile"))
        )

        assert "no node" not in driver.find_element(By.ID, "zones").text
        assert "No answer" not in driver.find_element(By.ID, "status").text


def test_a_node_maintenance_says_how_far_it_is(driver: Chrome) -> None:
    """In a row: the phase, the nodes, the time that is left, and what is missing."""
    with serving(USUAL) as (address, _):
        shown(driver, address)

        text = driver.find_element(By.ID, "maintenances").text
        assert text.split()[:5] == ["kernel", "Draining", "1", "of", "3"]
        assert "in 30m" in text
        assert text.endswith("metrics.k8s.io has not answered for 5 minutes")


def test_nodes_are_grouped_by_zone(driver: Chrome) -> None:
    """Sorted, one tile of each reached by Tab."""
    nodes = [
        a_node(name, place).model_copy(update={"zone": "ba"[place % 2]}) for place, name in enumerate("dcba")
    ]
    with serving(USUAL.model_copy(update={"nodes": tuple(nodes)})) as (address, _):
        shown(driver, address)

        heads = [each.text for each in driver.find_elements(By.CSS_SELECTOR, "#zones h3")]
        assert heads[0].startswith("Zone a 2 nodes, on average 20 % cpu")
        tiles = driver.find_elements(By.CSS_SELECTOR, "#zones .tile")
        assert [each.get_attribute("data-node") for each in tiles] == ["a", "c", "b", "d"]
        assert [each.get_attribute("tabindex") for each in tiles] == ["0", "-1", "0", "-1"]


def test_the_last_hours_are_bars_and_changes_of_policies(driver: Chrome) -> None:
    """The bars are a picture with a sentence; a pause that ended is a resumption."""
    with serving(USUAL) as (address, _):
        shown(driver, address)

        said = "276 moves ended well, 24 did not, at most 24 within a quarter of an hour"
        assert said in driver.find_element(By.ID, "hours-said").text
        assert said in (driver.find_element(By.ID, "slots").get_attribute("aria-label") or "")
        bars = driver.find_elements(By.CSS_SELECTOR, "#slots span")
        assert [len(each.find_elements(By.TAG_NAME, "i")) for each in bars] == [1, *[2] * 23]
        assert "23 well, 1 not" in (bars[-1].get_attribute("title") or "")
        assert [each[:3] for each in rows(driver, "changes")] == [
            ["60m ago", "tidy", "Resumed"],
            ["2h ago", "tidy", "Paused"],
        ]


def test_zones_of_a_large_cluster_begin_folded(driver: Chrome) -> None:
    """Their headings say how full they are; tiles are made when one is opened, and follow what changes."""
    nodes = [
        a_node(name, place).model_copy(update={"zone": "ba"[place % 2]}) for place, name in enumerate("dcba")
    ]
    first = USUAL.model_copy(update={"nodes": tuple(nodes), "node_count": 501})
    moved = a_node("c", 12).model_copy(update={"zone": "b"})
    with serving(first) as (address, _):
        shown(driver, address)
        heads = driver.find_elements(By.CSS_SELECTOR, "#zones summary")
        assert [each.text.split(",")[0] for each in heads] == ["Zone a 2 nodes", "Zone b 2 nodes"]
        assert not driver.find_elements(By.CSS_SELECTOR, ".tile")

        for head in reversed(heads):
            head.click()
        WebDriverWait(driver, 60).until(
            lambda found: len(found.find_elements(By.CSS_SELECTOR, ".tile")) == len(nodes)
        )
        driver.execute_script(
            "show(JSON.parse(arguments[0]))",
            first.model_copy(update={"is_whole": False, "nodes": (moved,), "gone": ("d",)}).model_dump_json(
                by_alias=True
            ),
        )

        tiles = [each.get_attribute("data-node") for each in driver.find_elements(By.CSS_SELECTOR, ".tile")]
        assert tiles == ["a", "b", "c"]
        said = [each.text for each in driver.find_elements(By.CSS_SELECTOR, "#zones summary")]
        assert said[0].startswith("Zone a 1 node,")
        assert "1 above 90 %" in said[1]


def test_a_new_stream_goes_on_from_the_last_event(driver: Chrome) -> None:
    """Nodes that it does not send again stay, and text that ends lines elsewhere ends no event."""
    words = "one\u2028two"
    partly = a_view([], [], words=words).model_copy(update={"is_whole": False, "node_count": 5})
    with serving(USUAL, partly) as (address, asked):
        shown(driver, address)
        driver.execute_script("current += 1; follow()")
        WebDriverWait(driver, 60).until(lambda _: "after 1" in asked)

        assert len(driver.find_elements(By.CSS_SELECTOR, ".tile")) == 5
        assert rows(driver, "rows")[0][-1].startswith(words)


def test_before_its_nodes_a_page_shows_the_rest(driver: Chrome) -> None:
    """Thousands of nodes take longer than the first line and the policies."""
    early = USUAL.model_copy(update={"is_whole": False, "nodes": ()})
    with serving(early) as (address, _):
        shown(driver, address)

        assert f"{USUAL.node_count} nodes" in driver.find_element(By.ID, "status").text
        assert len(rows(driver, "rows")) == len(USUAL.policies)
        assert driver.find_element(By.ID, "zones").text == ""


def test_a_phone_shows_only_what_there_is(driver: Chrome) -> None:
    """And a target once, and no sections before there are any."""
    words = "expected on new-1"
    predicted = a_record("shop/web-c", "Predicted", words=words)
    places = LivePolicy(policy="places", scheduler="ours", conditions=())
    with serving(USUAL.model_copy(update={"policies": (places,), "records": (predicted,)})) as (address, _):
        resized(driver, 390)
        opened(driver, address)
        assert not driver.find_element(By.ID, "sections").is_displayed()
        shown(driver, address)

        assert driver.find_element(By.ID, "sections").is_displayed()
        cells = driver.find_elements(By.CSS_SELECTOR, "#rows td")
        assert [each.is_displayed() for each in cells] == [True, True, *[False] * 3, *[True] * 3]
        assert words not in driver.find_element(By.ID, "ended").text
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_wall_has_nothing_to_click(driver: Chrome) -> None:
    with serving(USUAL) as (address, _):
        opened(driver, f"{address}?wall")
        driver.find_element(By.ID, "token").send_keys("one")  # who puts it up signs in
        driver.find_element(By.CSS_SELECTOR, "#ask button").click()
        WebDriverWait(driver, 60).until(
            lambda found: found.find_element(By.CSS_SELECTOR, "#ended button").is_displayed()
        )

        assert "placed" in driver.find_element(By.ID, "status").text
        for hidden in ("nav", "#filter", "#queue .scroll", "footer"):
            assert not driver.find_element(By.CSS_SELECTOR, hidden).is_displayed(), hidden
        driver.execute_script("document.querySelector('#ended button').scrollIntoView()")
        button = driver.find_element(By.CSS_SELECTOR, "#ended button")
        webdriver.ActionChains(driver).move_to_element(button).click().perform()
        assert not driver.find_element(By.CSS_SELECTOR, "dialog").is_displayed()
        assert_nothing_serious(driver)


def test_it_is_used_by_keyboard(driver: Chrome) -> None:
    """Tab reaches the tiles once and the pods; arrows go on from there, Enter explains, Escape returns."""
    with serving(USUAL) as (address, _):
        shown(driver, address)
        reached: list[str] = []
        for _ in range(60):
            driver.switch_to.active_element.send_keys(Keys.TAB)
            kind, name = driver.execute_script(FOCUSED)
            if reached and kind == "skip":
                break  # once around
            reached.append(name)
        assert reached.count("new-1") == 1
        assert {"shop/web-big", "shop/job", "shop/web-a", "shop/web-b"} <= set(reached)
        assert not {"old", "new-2", "new-3"} & set(reached)

        tile = driver.find_element(By.CSS_SELECTOR, '.tile[data-node="new-1"]')
        tile.send_keys(Keys.ARROW_RIGHT)
        tile = driver.switch_to.active_element
        tile.send_keys(Keys.END)
        tile = driver.switch_to.active_element
        assert tile.get_attribute("data-node") == "over-12"
        tile.send_keys(Keys.ENTER)
        dialog = driver.find_element(By.TAG_NAME, "dialog")
        assert dialog.is_displayed()
        assert dialog.find_element(By.TAG_NAME, "h2").text == "over-12"
        WebDriverWait(driver, 300).until(
            lambda _: "attempts made: 3" in dialog.find_element(By.TAG_NAME, "pre").text
        )
        dialog.send_keys(Keys.ESCAPE)
        assert not dialog.is_displayed()
        assert driver.switch_to.active_element == tile


@pytest.mark.parametrize("view", [USUAL, MARKUP], ids=["usual", "hostile"])
def test_axe_finds_nothing_serious(driver: Chrome, view: LiveView) -> None:
    with serving(view) as (address, _):
        assert_nothing_serious(shown(driver, address))


def test_names_that_are_markup_are_inert(driver: Chrome) -> None:
    """They are shown and can be clicked, nothing of them runs, and the longest is asked for whole."""
    with serving(MARKUP) as (address, asked):
        shown(driver, address)
        assert [each[0] for each in rows(driver, "waiting")] == [f"shop/{each}" for each in HOSTILE]
        for name in HOSTILE:
            button = next(
                each
                for each in driver.find_elements(By.CSS_SELECTOR, "#waiting button")
                if each.get_attribute("data-pod") == f"shop/{name}"
            )
            button.click()
            WebDriverWait(driver, 300).until(expected.text_to_be_present_in_element(PRE, "<b>it</b>"))
            assert driver.find_element(By.CSS_SELECTOR, "dialog h2").text == f"shop/{name}"
            driver.find_element(By.TAG_NAME, "dialog").send_keys(Keys.ESCAPE)

        assert driver.title == "Plimsoll"
        assert driver.find_elements(By.TAG_NAME, "img") == []
        assert logged(driver, "browser") == []
        assert f"/explain/pods/shop/{LONG}" in asked


@needs_chromium
@pytest.mark.parametrize("hour", range(20, 24))
def test_an_hour_at_the_right_edge_stays_in_the_page(tmp_path: Path, hour: int) -> None:
    """Else a phone scrolls sideways in the minutes after each full hour."""
    root = Path(__file__).parents[2]
    sheet = (root / "operator/plimsoll/app/memory/page/live.css").read_text(encoding="utf-8")
    bars = "".join(f'<span data-at="{"02:00" if each == hour else ""}"></span>' for each in range(24))
    page = tmp_path / "hours.html"
    page.write_text(
        f'<style>:root {{ --small: .8rem }} {sheet}</style><body><div class="slots">{bars}</div>',
        encoding="utf-8",
    )

    with a_browser(width=390) as driver:
        opened(driver, page)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
