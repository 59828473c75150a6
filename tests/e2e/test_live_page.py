"""The live page in Chromium: it shows the operator, follows it, outlives a restart, lets no stranger in."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from axe_core_python.selenium import Axe
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from web_pages.browser import SERIOUS, a_browser, logged, needs_chromium, opened
from web_pages.signing_proxy import COOKIE, signing_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from selenium.webdriver import Chrome

    from e2e.operator_process import Operator
    from roadstead.clients import RunningCluster
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e, needs_chromium]

#: Seconds that a page gets to show something, on a busy machine.
PATIENCE_S = 300.0


def seen(driver: Chrome, selector: str, text: str) -> None:
    """Wait until an element has a text."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if text in driver.find_element(By.CSS_SELECTOR, selector).text:
            return
        time.sleep(0.2)
    raise AssertionError(f"{text!r} is not in {driver.find_element(By.CSS_SELECTOR, selector).text!r}")


def pressed(driver: Chrome, selector: str) -> None:
    """Click on an element as soon as it is there; an update of the page may replace it before."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            driver.find_element(By.CSS_SELECTOR, selector).click()
        except (NoSuchElementException, StaleElementReferenceException):
            if time.monotonic() > deadline:
                raise
        else:
            return


def look(driver: Chrome, operator: Operator, token: str) -> None:
    """Open the page, give the token, and see what there is."""
    opened(driver, f"http://127.0.0.1:{operator.metrics_port}/ui")
    driver.find_element(By.ID, "token").send_keys(token, Keys.ENTER)


@asynccontextmanager
async def with_a_page(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> AsyncIterator[tuple[RunningCluster, Operator, Scene]]:
    """A cluster, an operator that serves the page, and a scene."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig, "--ui", "true")
        yield cluster, operator, await Scene(speaker).begin()


async def test_people_see_the_operator_and_strangers_nothing(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """A node, a pod that waits, its explanation; then a change, a restart, and a wrong token."""
    async with with_a_page(start_roadstead, start_operator) as (cluster, operator, scene):
        node = await scene.node("small", cpu="2")
        policy = await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
        await scene.pod("web", cpu="1")
        await scene.pod("big", cpu="3")
        await eventually(lambda: scene.condition("big"), lambda found: found.get("status") == "False")

        def first(driver: Chrome) -> None:
            look(driver, operator, "forged")
            seen(driver, "#status", "does not accept the token")
            assert driver.find_elements(By.CSS_SELECTOR, ".tile") == []
            logged(driver, "browser")  # the 401 is logged

            driver.find_element(By.ID, "token").send_keys(cluster.token, Keys.ENTER)
            seen(driver, "#status", "1 node · 1 pod placed")
            seen(driver, "#zones", node)
            tile = driver.find_element(By.CSS_SELECTOR, ".tile")
            assert tile.get_attribute("title") == f"{node}: cpu 50 %, memory 0 %, 1 pod"
            seen(driver, "#waiting", f"{scene.name}/big unschedulable")
            seen(driver, "#rows", policy)
            bad = [
                (each["id"], each["nodes"][0]["html"])
                for each in Axe().run(driver)["violations"]
                if each["impact"] in SERIOUS
            ]
            assert bad == []
            pressed(driver, "#waiting button")
            seen(driver, "dialog pre", "NodeResourcesFit")
            driver.find_element(By.TAG_NAME, "dialog").send_keys(Keys.ESCAPE)
            assert logged(driver, "browser") == []

        with a_browser() as driver:
            await asyncio.to_thread(first, driver)
            await scene.node("large", cpu="8")
            await asyncio.to_thread(seen, driver, "#status", "2 nodes · 2 pods placed")
            assert await operator.stop() == 0
            await asyncio.to_thread(seen, driver, "#status", "No answer, trying again")
            operator.start()
            await asyncio.to_thread(seen, driver, "#status", "2 nodes · 2 pods placed")
        assert await operator.stop() == 0


async def test_behind_a_proxy_that_signs_in_no_token_is_pasted(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """A session that ends, or whose token the API server refuses, is said; the page keeps no token."""
    async with with_a_page(start_roadstead, start_operator) as (cluster, operator, scene):
        await scene.node("small", cpu="2")
        sessions = {"jane": cluster.token}
        async with signing_in(f"http://127.0.0.1:{operator.metrics_port}", sessions) as proxy:

            def signed_in(driver: Chrome) -> None:
                opened(driver, f"{proxy.address}/ui")
                assert "sign in" in driver.find_element(By.TAG_NAME, "body").text
                driver.add_cookie({"name": COOKIE, "value": "jane"})
                opened(driver, f"{proxy.address}/ui")
                seen(driver, "#status", "1 node")
                assert not driver.find_element(By.ID, "ask").is_displayed()
                assert driver.execute_script("return sessionStorage.length") == 0
                pressed(driver, ".tile")
                seen(driver, "dialog pre", "explain node")

            with a_browser() as driver:
                await asyncio.to_thread(signed_in, driver)
                sessions["jane"] = "outdated"
                await asyncio.to_thread(
                    seen, driver, "#status", "does not accept the token; reload the page to sign in again"
                )
                assert not driver.find_element(By.ID, "ask").is_displayed()
                sessions["jane"] = cluster.token
                await asyncio.to_thread(seen, driver, "#status", "1 node")
        assert await operator.stop() == 0


async def test_there_is_no_page_unless_asked_for(operator: Operator) -> None:
    assert operator.ask("/ui")[0] == 404
    assert operator.ask("/explain/live")[0] == 404
