"""The live page through a fail-over: one address before two replicas, and a leader that is killed."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from e2e.test_high_availability import leading
from e2e.test_live_page import seen
from web_pages.browser import a_browser, needs_chromium, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from selenium.webdriver import Chrome

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

#: The lease of a killed leader expires after 15 s by design.
pytestmark = [pytest.mark.e2e, pytest.mark.slow, needs_chromium]


@asynccontextmanager
async def service(*ports: int) -> AsyncIterator[int]:
    """One address before several, as a Service with this order of preference; its port."""

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in ports:
            with contextlib.suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(pump(reader, back), pump(there, writer))
                return
        writer.close()

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def shown(driver: Chrome, selector: str) -> bool:
    return driver.find_element("css selector", selector).is_displayed()


async def test_the_page_goes_on_at_the_replica_that_is_left(
    start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """It says who leads while a standby answers, and shows the queue when it leads, without a reload."""
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        replicas = [start_operator(cluster.kubeconfig, "--ui", "true") for _ in range(2)]
        for each in replicas:
            await asyncio.to_thread(each.until_ready)
        leader = await leading(*replicas)
        (standby,) = [each for each in replicas if each is not leader]
        scene = await Scene(speaker).begin()
        await scene.node("small", cpu="2")
        await scene.policy({"scheduling": {"schedulerName": scene.scheduler}})
        await scene.pod("big", cpu="3")
        await eventually(lambda: scene.condition("big"), lambda found: found.get("status") == "False")
        name = leader.ask("/readyz")[1].partition("leading as ")[2].split()[0]

        async with service(leader.metrics_port, standby.metrics_port) as port:
            with a_browser() as driver:

                def first() -> None:
                    opened(driver, f"http://127.0.0.1:{port}/ui")
                    driver.execute_script("window.wasNeverLeft = true")
                    driver.find_element("id", "token").send_keys(cluster.token, "\ue007")
                    seen(driver, "#standing", f"leading as {name}")
                    seen(driver, "#waiting", f"{scene.name}/big unschedulable")
                    assert not shown(driver, "#standby")
                    assert not shown(driver, "#ask")

                def second() -> None:
                    seen(driver, "#standing", "standing by")
                    seen(driver, "#standby", f"The leader is {name}")
                    seen(driver, "#status", "1 node")

                def third() -> None:
                    seen(driver, "#standing", "leading as ")
                    assert name not in driver.find_element("id", "standing").text
                    seen(driver, "#waiting", f"{scene.name}/big unschedulable")
                    assert not shown(driver, "#standby")
                    assert not shown(driver, "#ask")
                    assert driver.execute_script("return window.wasNeverLeft")

                await asyncio.to_thread(first)
                leader.kill()
                await asyncio.to_thread(second)
                await asyncio.to_thread(third)
        assert await standby.stop() == 0
