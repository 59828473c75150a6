"""A plugin whose calls hold up all pods is named in the status of its policies, until it is fast again."""

import asyncio
from typing import Any, ClassVar

from misbehaving.stage import Stage, played
from plimsoll.framework import SUCCESS, NodeFilter
from plimsoll.policies import extensions


class Sleeper(NodeFilter):
    """Sleeps as long as a test wants; registered by an entry point."""

    name: ClassVar = "Sleeper"
    seconds: ClassVar[float] = 0.0

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        loop: Any = asyncio.get_running_loop()
        loop._now += self.seconds / 3
        return SUCCESS


def test_a_slow_plugin_is_named_until_it_is_fast() -> None:
    """Three slow calls are needed: a busy machine makes one call of any plugin slow."""
    said: dict[str, str] = {}

    async def story(stage: Stage) -> None:
        stage.serve("slow", "Sleeper")
        stage.serve("healthy")
        await asyncio.sleep(5.0)

        async def some(first: int, seconds: float, count: int) -> str:
            Sleeper.seconds = seconds
            for number in range(first, first + count):
                stage.pod(f"p{number}", "slow", cpu=f"{10 + number}m")
                await asyncio.sleep(2.0)
            return stage.said_of_policy("slow")

        said["fast"] = await some(0, 0.05, 12)
        said["twice"] = await some(15, 0.3, 2)
        said["slow"] = await some(20, 0.3, 3)
        said["healthy"] = stage.said_of_policy("healthy")
        said["fast again"] = await some(40, 0.0, 30)

    packages = {extensions.PLUGINS: {"Sleeper": f"{__name__}:Sleeper"}}
    played(story, [], packages=packages)

    assert said["slow"] == 'plugin "Sleeper" takes up to 0.3 s a call at filter; no pod is placed meanwhile'
    assert said["fast"] == said["twice"] == said["healthy"] == said["fast again"] == ""
