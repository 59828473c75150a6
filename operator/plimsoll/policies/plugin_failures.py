"""Collects plugins that raise or return invalid results, for the status of the policies that use them.

The first failure of a plugin at an extension point is what users need to read; the rest is counted by the
metrics. It stays until a policy that uses the plugin is changed: then the plugin has another chance.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from plimsoll.ports.observer import Observer

#: Characters of a failure's sentence.
SENTENCE = 300


class PluginFailures(Observer):
    """Which plugins have failed, and how."""

    def __init__(self) -> None:
        self._sentences: dict[tuple[str, str], str] = {}
        self._news = asyncio.Event()

    def plugin_failed(self, plugin: str, point: str, problem: str) -> None:
        """Keep the first failure of a plugin at a point."""
        if (plugin, point) not in self._sentences:
            text = f'plugin "{plugin}" failed at {point}: {problem}'
            self._sentences[plugin, point] = text if len(text) <= SENTENCE else text[: SENTENCE - 1] + "…"
            self._news.set()

    def of(self, plugins: Collection[str]) -> list[str]:
        """The sentences about these plugins."""
        return [text for (plugin, _), text in sorted(self._sentences.items()) if plugin in plugins]

    def forgive(self, plugins: Collection[str]) -> None:
        """Forget what these plugins did."""
        self._sentences = {key: text for key, text in self._sentences.items() if key[0] not in plugins}

    async def run(self, tell: Callable[[], Awaitable[None]]) -> None:
        """Call ``tell`` after each new kind of failure, until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            await tell()
