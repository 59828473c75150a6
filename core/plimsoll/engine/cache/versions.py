"""Compares the versions of plugins' results for one template, and so finds the results that still hold.

See :class:`plimsoll.framework.capabilities.Versioned`.
"""

from plimsoll.engine.cache.changes import ClusterChanges
from plimsoll.engine.plugin_reach import Stages, VersionedPlugin
from plimsoll.framework import PodTemplate, ResultVersion, Snapshot
from plimsoll.framework.plugin_answers import named

Versions = list[ResultVersion | None]


class TemplateVersions:
    """The versions of the results that are kept for one template.

    Attributes:
        holding: Global plugins whose results hold.
        by_row: Global plugins whose results for changed rows may differ even if they hold.
    """

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self.holding: frozenset[str] = frozenset()
        self.by_row: frozenset[str] = frozenset()
        self._local: Versions = []
        self._now: Versions = []  #: of the results that are being computed
        self._kept: Versions = []
        self._names: frozenset[str] = frozenset()  #: plugins that have a version in ``_kept``
        self._compared: list[tuple[VersionedPlugin, ResultVersion]] | None = None

    def local_differ(self, template: PodTemplate, snapshot: Snapshot) -> bool:
        """Whether results of local plugins for unchanged rows differ from the latest call's; PluginError."""
        plugins = self._stages.versioned_local
        if not plugins:
            return False
        versions = _versions(plugins, template, snapshot)
        if versions == self._local:
            return False
        self._local = versions
        return True

    def all_hold(self, template: PodTemplate, snapshot: Snapshot) -> bool:
        """Whether the results of all global plugins hold, if node and other objects have not changed."""
        if self._compared is None:
            return False
        for plugin, version in self._compared:
            try:
                if plugin.result_version(template, snapshot) != version:
                    return False
            except BaseException:  # noqa: BLE001 - called again, and then named
                return False
        self.holding = self._names
        return True

    def compare(self, template: PodTemplate, changes: ClusterChanges) -> None:
        """Find the global plugins whose results hold; PluginError. Nothing is kept until ``keep``."""
        plugins = self._stages.versioned_global
        former: Versions = [] if changes.in_nodes else self._kept
        self._now = _versions(plugins, template, changes.all)
        self.holding = frozenset(
            plugin.name
            for plugin, now, then in zip(plugins, self._now, former, strict=False)
            if now is not None and now == then
        )
        self.by_row = frozenset(
            plugin.name
            for plugin, now in zip(plugins, self._now, strict=True)
            if now is not None and now.by_row
        )

    def keep(self, *, are_comparable: bool) -> None:
        """Keep the versions of the last comparison, if the next may be compared with them."""
        self._kept = self._now if are_comparable else []
        known = [
            (plugin, version)
            for plugin, version in zip(self._stages.versioned_global, self._kept, strict=False)
            if version is not None
        ]
        self._names = frozenset(plugin.name for plugin, _ in known)
        self._compared = None
        if are_comparable and self._stages.global_names <= self._names and not self._stages.individual:
            self._compared = [(plugin, version) for plugin, version in known if not version.lasts]


def _versions(plugins: tuple[VersionedPlugin, ...], template: PodTemplate, snapshot: Snapshot) -> Versions:
    versions: Versions = []
    try:
        for plugin in plugins:
            versions.append(plugin.result_version(template, snapshot))
    except BaseException as exc:
        raise named(plugins[len(versions)].name, "preFilter", exc) from exc
    return versions
