"""PreBind: what must be done before a pod is bound, such as binding its volumes; it can be called off.

Plugins run in order; neighbours that say ``is_parallel`` run side by side, and the first refusal among
them calls the others off. A pod that is preempted or deleted meanwhile is called off as a whole: nothing
is bound, nobody has to delete it.

Source: kube-scheduler v1.36, ``framework/runtime/framework.go`` (``RunPreBindPlugins``) and
``backend/podsinprebind``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from plimsoll.engine.plugin_calls import calling
from plimsoll.framework import SUCCESS, Code, PreBindPlugin, Status
from plimsoll.framework.capabilities import runs_in_parallel
from plimsoll.scheduling.binding.answering import an_answer, signed

if TYPE_CHECKING:
    from plimsoll.scheduling.binding.cycle import Attempt


class PreBinding:
    """Runs the PreBind plugins of many pods.

    Args:
        announce: Tells the API server where a pod will go, before anything is done for it.
    """

    def __init__(self, announce: "Callable[[Attempt], Awaitable[None]]") -> None:
        self._announce = announce
        self._under_way: dict[str, asyncio.Future[Status]] = {}

    def call_off(self, uid: str, plugin: str, reason: str) -> bool:
        """Stop what is done for a pod; whether there was something to stop."""
        calling_off = self._under_way.get(uid)
        if calling_off is None:
            return False
        if not calling_off.done():
            calling_off.set_result(Status(Code.UNSCHEDULABLE, (reason,), plugin))
        return True

    async def run(self, attempt: "Attempt") -> Status:
        """Ask the plugins that have something to do; SUCCESS when the pod may be bound.

        Raises:
            PluginError: One raised.
        """
        if not attempt.works:
            return SUCCESS
        uid = attempt.pod.uid
        calling_off = self._under_way[uid] = asyncio.get_running_loop().create_future()
        try:
            await self._announce(attempt)
            for group in _groups(attempt.works):
                status = await self._together(group, attempt, calling_off)
                if not status.is_success:
                    return status
            return calling_off.result() if calling_off.done() else SUCCESS
        finally:
            if self._under_way.get(uid) is calling_off:
                del self._under_way[uid]

    async def _together(
        self, group: list[PreBindPlugin], attempt: "Attempt", calling_off: asyncio.Future[Status]
    ) -> Status:
        tasks = [asyncio.ensure_future(_work(plugin, attempt)) for plugin in group]
        pending: set[asyncio.Future[Status]] = {*tasks}
        try:
            while pending:
                done, _ = await asyncio.wait({*pending, calling_off}, return_when=asyncio.FIRST_COMPLETED)
                if calling_off.done():
                    return calling_off.result()
                pending -= done
                for task in tasks:  # in the profile's order, should several end at once
                    if task in done and not task.result().is_success:
                        return task.result()
            return SUCCESS
        finally:
            for unfinished in pending:
                unfinished.cancel()
            # What they left behind is undone next: they must have come to an end by then.
            await asyncio.gather(*pending, return_exceptions=True)


def _groups(works: list[PreBindPlugin]) -> list[list[PreBindPlugin]]:
    """Neighbours that may run side by side; every other plugin is by itself."""
    groups: list[list[PreBindPlugin]] = []
    beside = False
    for plugin in works:
        is_parallel = runs_in_parallel(plugin)
        if is_parallel and beside:
            groups[-1].append(plugin)
        else:
            groups.append([plugin])
        beside = is_parallel
    return groups


async def _work(plugin: PreBindPlugin, attempt: "Attempt") -> Status:
    with calling(plugin.name, "preBind"):
        status = an_answer(await plugin.pre_bind(attempt.state, attempt.pod, attempt.node), Status)
    return status if status.is_success else signed(status, plugin, "preBind")
