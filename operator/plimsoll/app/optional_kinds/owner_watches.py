"""Watches the owners that stand in the place of PodGroups, once a policy derives groups from them.

Without such a policy no request is made. An owner's pods wait until the owner has been read.
"""

import asyncio
from collections.abc import Callable

from plimsoll.access.rights import READ_OWNERS
from plimsoll.app.optional_kinds.optional_watch import OptionalWatch
from plimsoll.app.shared_parts import SharedParts
from plimsoll.cluster.watch_events import WatchEvent
from plimsoll.cluster.watched_resources import GROUP_OWNERS, WatchedResource
from plimsoll.leadership.leader import Leadership


class OwnerWatches:
    """Runs the watches."""

    def __init__(
        self, parts: SharedParts, leadership: Leadership, ingest: Callable[[str, list[WatchEvent]], None]
    ) -> None:
        self._groups = parts.groups

        def watch(resource: WatchedResource) -> OptionalWatch:
            return OptionalWatch(
                parts,
                leadership,
                (resource,),
                lambda: READ_OWNERS[resource.name],
                ingest,
                f"pods of {resource.name} wait where a policy derives groups, all others are served",
            )

        self._watches = [watch(resource) for resource in GROUP_OWNERS]

    async def run(self) -> None:
        """Watch until cancelled, from the first policy on that derives groups."""
        await self._groups.derived.until(lambda: bool(self._groups.deriving))
        async with asyncio.TaskGroup() as group:
            for each in self._watches:
                group.create_task(each.run())
