"""Waits for Permit of gang members, and binds them once enough may be bound, or none.

Other plugins decide on Permit for each member; this module counts the permitted ones. A member that is still
on hold when the others bind follows when it is permitted.
"""

import asyncio
from collections.abc import Iterable, Sequence

from plimsoll.engine.gangs.composite import Branch, Leaf
from plimsoll.framework import Status, unschedulable
from plimsoll.model.kinds.owned_group import title_of
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.binding.cycle import BindingAttempt
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.gangs.gates import PLUGIN
from plimsoll.scheduling.queue.queued_pod import QueuedPod

Begun = tuple[QueuedPod, BindingAttempt]
"""A member that is assumed, with its binding cycle begun."""


def too_few(unit: Leaf | Branch, permitted: int) -> str:
    """The message when no member starts, of a group or of a composite group."""
    needed = max(unit.fewest, 1)
    return f"{permitted} of the {needed} members that {title_of(unit.key)} needs were permitted to start"


async def release(  # noqa: C901, PLR0912 - one wait for permits, time and members
    pipeline: BindingPipeline, clock: Clock, begun: Sequence[Begun], unit: Leaf | Branch, timeout_s: float
) -> tuple[int, frozenset[str]]:
    """Bind when enough members are permitted; none if too few are in time.

    Of a composite group, a group binds only with its own minimum, and as soon as it is known which groups do.
    Returns the number of permitted members, and the keys of the groups whose members are bound.
    """
    group_of = {pod.uid: leaf.key for leaf in unit.leaves for pod, _ in leaf.waiting}

    def ready(members: Iterable[Begun]) -> frozenset[str]:
        return unit.ready({queued.pod.uid for queued, _ in members}) or frozenset()

    free = [each for each in begun if each[1].held is None]
    refused: list[tuple[QueuedPod, BindingAttempt, Status]] = []
    asked = {
        asyncio.ensure_future(pipeline.permission(each[1])): each
        for each in begun
        if each[1].held is not None
    }
    over = asyncio.ensure_future(clock.sleep(timeout_s))
    try:
        while asked and ready(free) != ready((*free, *asked.values())) and not over.done():
            await asyncio.wait({*asked, over}, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in asked if each.done()]:
                queued, attempt = asked.pop(task)
                status = task.result()
                if status.is_success:
                    free.append((queued, attempt))
                else:
                    refused.append((queued, attempt, status))
    except BaseException:
        for task in asked:
            task.cancel()
        for _, attempt in begun:
            pipeline.undo(attempt)
        raise
    finally:
        over.cancel()
    permitted, starting = len(free), ready(free)
    why = unschedulable(too_few(unit, permitted)).by(PLUGIN)
    for queued, attempt in asked.values():
        if attempt.held is not None and group_of[queued.pod.uid] not in starting:
            attempt.held.reject(PLUGIN, why.message)
    refused += [(*each, why) for each in free if group_of[each[0].pod.uid] not in starting]
    free = [each for each in free if group_of[each[0].pod.uid] in starting]
    for queued, attempt, status in refused:
        pipeline.unbound(queued, attempt, status)
    for queued, attempt in free:
        pipeline.start_bind_when_permitted(queued, attempt)
    for task, (queued, attempt) in asked.items():
        pipeline.start(_follow(pipeline, task, queued, attempt))
    return permitted, starting


async def _follow(
    pipeline: BindingPipeline,
    permission: "asyncio.Future[Status]",
    queued: QueuedPod,
    attempt: BindingAttempt,
) -> None:
    """Bind a member that was still on hold when the others were bound."""
    try:
        status = await permission
    except BaseException:
        pipeline.undo(attempt)
        raise
    if status.is_success:
        pipeline.start_bind_when_permitted(queued, attempt)
    else:
        pipeline.unbound(queued, attempt, status)
