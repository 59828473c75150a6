"""Marks show when plugins that read a node's own pods change their results although no row has changed."""

from collections.abc import Hashable

from plimsoll.engine.plugin_calls import called
from plimsoll.engine.plugin_reach import MarkedPlugin
from plimsoll.framework import PodTemplate, Snapshot


class Marks:
    """The marks of one template."""

    def __init__(self, plugins: tuple[MarkedPlugin, ...]) -> None:
        self._plugins = plugins
        self._latest: list[Hashable] = []

    def differ(self, template: PodTemplate, snapshot: Snapshot) -> bool:
        """Whether some mark differs from the latest call's.

        Raises:
            PluginError: A plugin raised.
        """
        if not self._plugins:
            return False
        found = [called(each.name, "mark", each.mark, template, snapshot) for each in self._plugins]
        if found == self._latest:
            return False
        self._latest = found
        return True
