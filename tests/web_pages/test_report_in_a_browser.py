"""A report in Chromium: it loads and logs nothing, and serves pointer, keyboard and screen reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from cli.commands import say
from web_pages.browser import a_browser, assert_nothing_serious, logged, needs_chromium, opened
from web_pages.scenes import SCRIPT, SIX_HOURS, a_hostile_page, a_long_page, a_plan, a_replay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from selenium.webdriver import Chrome

pytestmark = needs_chromium

#: In how many lines an element's words stand.
LINES = """
const words = document.createRange();
words.selectNodeContents(arguments[0]);
return words.getClientRects().length;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def page(folder: Path) -> Path:
    return a_plan(folder)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_replay(tmp_path_factory.mktemp("replay"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_hostile_page(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def driver() -> Iterator[Chrome]:
    with a_browser() as found:
        yield found


#: The words in sight of all elements that match, in one exchange with the browser.
WORDS = """
return [...document.querySelectorAll(arguments[0])].map(each => each.innerText.trim().replace(/\\s+/g, " "));
"""
#: The text of each cell of some rows.
CONTENTS = "return arguments[0].map(row => [...row.querySelectorAll('td')].map(cell => cell.textContent));"


def texts(driver: Chrome, selector: str) -> list[str]:
    found: list[str] = driver.execute_script(WORDS, selector)
    return found


def requests_of(driver: Chrome) -> list[str]:
    """Addresses that the page asked for."""
    events = [json.loads(each["message"])["message"] for each in logged(driver, "performance")]
    sent = [
        each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"
    ]
    return [each for each in sent if not each.startswith("file:")]


@pytest.mark.parametrize("name", ["page", "replayed", "hostile"])
def test_the_console_stays_silent_and_nothing_is_loaded(
    driver: Chrome, name: str, request: pytest.FixtureRequest
) -> None:
    opened(driver, request.getfixturevalue(name))

    assert logged(driver, "browser") == []
    assert requests_of(driver) == []


def test_the_numbers_are_those_of_the_json(driver: Chrome, page: Path) -> None:
    """Each move, with its nodes and its gain; each tile, with its shares before and after."""
    opened(driver, page)
    said = json.loads(say("plan", "--from", str(page.parent / "cluster.plimsoll"), "-o", "json").out)

    (tidy,) = [each for each in said["policies"] if each["policy"] == "tidy"]
    rows = texts(driver, "tbody tr")
    for move in tidy["moves"]:
        assert any(
            row.startswith(f"{move['position']} {move['pod']} {move['sourceNode']} {move['targetNode']}")
            and f"{move['gain']:+} of {move['gainMaximum']}" in row
            for row in rows
        ), rows
    labels = driver.execute_script(
        "return [...document.querySelectorAll('.map:first-of-type .tile')].map(each => each.ariaLabel);"
    )
    changed = {
        f"{node['node']}: {each['beforePercent']} % → {each['afterPercent']} %"
        for node in tidy["nodes"]
        for each in node["changes"]
        if each["resource"] == "cpu"
    }
    assert changed
    assert changed <= {*labels}
    refused = sum(group["pods"] for plan in said["policies"] for group in plan["refused"])
    assert texts(driver, ".figures dd") == ["1", "29.5 → 21.2", str(refused)]
    verdict = driver.find_element(By.CSS_SELECTOR, ".verdict").text
    assert verdict == "1 pod would move off 1 node, by tidy (Enforce)."


def test_refusals_of_a_replay_are_those_of_its_json(driver: Chrome, replayed: Path) -> None:
    """By reason with runs and pods; each row once, and no other."""
    opened(driver, replayed)
    cluster = str(replayed.parent / "cluster.plimsoll")
    (outcome,) = json.loads(say("replay", cluster, *SIX_HOURS, "-o", "json").out)["outcomes"]
    (by_reason,) = (
        [
            tuple(cells)
            for cells in driver.execute_script(CONTENTS, table.find_elements(By.CSS_SELECTOR, "tbody tr"))
        ]
        for table in driver.find_elements(By.XPATH, "//section[h2='Moves that were refused']//table")
    )

    assert {(each["policy"], each["reason"]) for each in outcome["refused"]} == {
        ("tidy", "Budget"),
        ("tidy", "WorkloadLimit"),
        ("watched", "Budget"),
        ("watched", "NewComplaint"),
        ("watched", "NotYet"),
    }
    assert by_reason == [
        (
            outcome["label"],
            each["policy"],
            each["reason"],
            *(str(each[number]) for number in ("runs", "refusals", "pods", "atEnd")),
            each["message"],
        )
        for each in outcome["refused"]
    ]


@pytest.mark.parametrize("width", [1200, 320])
def test_axes_of_lines_are_read_on_a_phone_too(width: int, replayed: Path) -> None:
    """Words in a drawing shrink with it, so a narrow page has them as text."""
    with a_browser(width=width) as driver:
        opened(driver, replayed)
        words = [each.text for each in driver.find_elements(By.CSS_SELECTOR, ".axes") if each.is_displayed()]
        drawn = [
            each.rect["height"]
            for each in driver.find_elements(By.CSS_SELECTOR, ".lines figure > svg text")
            if each.is_displayed()
        ]

    assert (words[:1], len(words)) == (
        ["0 to 100, over 6 h"] if width == 320 else [],
        5 if width == 320 else 0,
    )
    assert all(height > 9 for height in drawn)
    assert bool(drawn) == (width > 320)


def test_a_long_table_scrolls_by_itself_and_keeps_its_headings(tmp_path: Path) -> None:
    """So that what comes after it is not forty screens away."""
    with a_browser() as driver:
        opened(driver, a_long_page(tmp_path))
        tall = [
            each
            for each in driver.find_elements(By.CSS_SELECTOR, ".scroll")
            if driver.execute_script("return arguments[0].scrollHeight > arguments[0].clientHeight", each)
        ]
        assert tall
        for each in tall:
            driver.execute_script("arguments[0].scrollTop = 400", each)
            heading = each.find_element(By.TAG_NAME, "th")
            assert each.rect["height"] <= 640
            assert each.rect["y"] <= heading.rect["y"] <= each.rect["y"] + 1
        assert "30 rows" in driver.find_element(By.TAG_NAME, "main").text


def test_a_phone_shows_where_the_arrows_begin(page: Path) -> None:
    """The drawing scrolls, so its first node must be at its left edge."""
    with a_browser(width=320) as driver:
        opened(driver, page)
        (name, *_) = driver.find_elements(By.CSS_SELECTOR, "figure svg.wide > text")

        assert name.text == "old"
        assert name.rect["x"] >= 0
        assert name.rect["x"] + name.rect["width"] < 100


def test_a_phone_shows_before_and_after_in_one_line(page: Path) -> None:
    """A figure that is broken at its arrow reads as two."""
    with a_browser(width=320) as driver:
        opened(driver, page)
        cells = driver.find_elements(By.XPATH, "//td[contains(., '→')]")

        assert "62.5 → 50.0" in [each.text for each in cells]
        assert [each.text for each in cells if driver.execute_script(LINES, each) > 1] == []


def test_every_pod_is_explained(driver: Chrome, page: Path) -> None:
    """From its node, which lists its pods, and from the search, whether a table has it or not."""
    opened(driver, page)
    driver.find_element(By.CSS_SELECTOR, '.tile[data-of="old"]').click()
    dialog = driver.find_element(By.TAG_NAME, "dialog")
    pods = texts(driver, "dialog .names button")
    assert pods == ["shop/db-a", "shop/db-b", "shop/web-a", "shop/web-b", "shop/web-c"]
    dialog.find_element(By.CSS_SELECTOR, '[data-of="shop/db-b"]').click()
    text = dialog.find_element(By.TAG_NAME, "pre").text
    for words in (
        "on node old",
        "requests: cpu 500m; priority 0; scheduler plimsoll",
        "owner: ReplicaSet shop/db",
        "PodDisruptionBudget shop/db allows 0 disruptions: 1 of 1 pods are healthy, 1 must be",
        "policy tidy: 1 pod of it stays for Budget",
    ):
        assert words in text
    dialog.send_keys(Keys.ESCAPE)

    driver.find_element(By.ID, "search").send_keys("web-a")
    driver.find_element(By.CSS_SELECTOR, 'header [data-of="shop/web-a"]').click()
    assert "owner: ReplicaSet shop/web" in dialog.find_element(By.TAG_NAME, "pre").text


def test_a_click_explains_and_escape_returns(driver: Chrome, page: Path) -> None:
    """A moved pod, a pod that waits, and a node."""
    opened(driver, page)
    for name, words in (
        ("shop/web-b", "Pod shop/web-b: policy tidy (Enforce): RemoveDuplicates moves it to new-1"),
        ("shop/web-big", "Insufficient cpu"),
        ("old", "62.5 % of its cpu"),
    ):
        button = driver.find_element(By.CSS_SELECTOR, f'[data-of="{name}"]')
        button.click()
        dialog = driver.find_element(By.TAG_NAME, "dialog")
        assert dialog.is_displayed()
        assert dialog.find_element(By.TAG_NAME, "h2").text == name
        assert words in dialog.find_element(By.TAG_NAME, "pre").text
        dialog.send_keys(Keys.ESCAPE)
        assert not dialog.is_displayed()
        assert driver.switch_to.active_element == button


def test_it_is_used_by_keyboard(driver: Chrome, page: Path) -> None:
    """Tab reaches the tiles once, arrows go on from there, Enter opens; the search is reached, too."""
    opened(driver, page)
    reached: list[str] = []
    for _ in range(40):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        element = driver.switch_to.active_element
        reached.append(
            f"{element.get_attribute('class') or element.tag_name} {element.get_attribute('data-of') or ''}"
        )
        if element.get_attribute("class") == "tile changed":
            break
    assert "skip " in reached
    assert any(each.startswith("input") for each in reached)
    element.send_keys(Keys.ARROW_RIGHT)
    element = driver.switch_to.active_element
    assert element.get_attribute("data-of") == "new-2"
    element.send_keys(Keys.ENTER)
    assert driver.find_element(By.TAG_NAME, "dialog").is_displayed()


def test_tables_sort_and_are_searched(driver: Chrome, page: Path) -> None:
    opened(driver, page)
    heading = next(
        each for each in driver.find_elements(By.CSS_SELECTOR, "th button") if each.text.startswith("ALLOWED")
    )
    table = heading.find_element(By.XPATH, "ancestor::table")

    def numbers() -> list[int]:
        return [int(each.text) for each in table.find_elements(By.CSS_SELECTOR, "tbody .number:nth-child(3)")]

    heading.click()
    assert numbers() == sorted(numbers())
    heading.click()
    assert numbers() == sorted(numbers(), reverse=True)

    driver.find_element(By.ID, "search").send_keys("web-b")
    shown = [each for each in driver.find_elements(By.CSS_SELECTOR, "tbody tr") if each.is_displayed()]
    assert shown
    assert all("web-b" in each.text for each in shown)


@pytest.mark.parametrize("name", ["page", "replayed"])
def test_axe_finds_nothing_serious(driver: Chrome, name: str, request: pytest.FixtureRequest) -> None:
    opened(driver, request.getfixturevalue(name))

    assert_nothing_serious(driver)


def test_names_that_are_markup_are_inert(driver: Chrome, hostile: Path) -> None:
    """They are shown and can be clicked, and nothing of them runs."""
    opened(driver, hostile)
    button = next(
        each
        for each in driver.find_elements(By.CSS_SELECTOR, ".names button")
        if each.get_attribute("data-of") == SCRIPT
    )
    button.click()

    assert driver.find_element(By.CSS_SELECTOR, "dialog h2").text == SCRIPT
    assert driver.title == SCRIPT
    assert driver.find_elements(By.TAG_NAME, "img") == []
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 1200
