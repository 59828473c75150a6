"""Waits for Permit of gang members, and binds them once enough may be bound, or none.

Other plugins decide on Permit for each member; this module counts the permitted ones. A member that is still
on hold when the others bind follows when it is permitted.
"""

import asyncio
from collections.abc import Sequence

from plimsoll.framework import Status, unschedulable
from plimsoll.model.kinds.owned_group import title_of
from plimsoll.ports.clock import Clock
from plimsoll.scheduling.binding.cycle import BindingAttempt
from plimsoll.scheduling.binding.pipeline import BindingPipeline
from plimsoll.scheduling.gangs.gates import PLUGIN
from plimsoll.scheduling.queue.queued_pod import QueuedPod

Begun = tuple[QueuedPod, BindingAttempt]
"""A member that is assumed, with its binding cycle begun."""


def too_few(group: str, permitted: int, needed: int) -> str:
    """The message when no member starts."""
    return f"{permitted} of the {needed} members that {title_of(group)} needs were permitted to start"


async def release(  # noqa: C901, PLR0912 - one wait for permits, time and members
    pipeline: BindingPipeline, clock: Clock, group: str, begun: Sequence[Begun], needed: int, timeout_s: float
) -> int:
    """Bind when enough members are permitted; none if too few are in time. Returns the number permitted."""
    free = [each for each in begun if each[1].held is None]
    refused: list[tuple[QueuedPod, BindingAttempt, Status]] = []
    asked = {
        asyncio.ensure_future(pipeline.permission(each[1])): each
        for each in begun
        if each[1].held is not None
    }
    over = asyncio.ensure_future(clock.sleep(timeout_s))
    try:
        while asked and len(free) < needed <= len(free) + len(asked) and not over.done():
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
    permitted = len(free)
    if permitted < needed:
        why = unschedulable(too_few(group, permitted, needed)).by(PLUGIN)
        for _, attempt in asked.values():
            if attempt.held is not None:
                attempt.held.reject(PLUGIN, why.message)
        refused += [(queued, attempt, why) for queued, attempt in free]
        free = []
    for queued, attempt, status in refused:
        pipeline.unbound(queued, attempt, status)
    for queued, attempt in free:
        pipeline.start_bind_when_permitted(queued, attempt)
    for task, (queued, attempt) in asked.items():
        pipeline.start(_follow(pipeline, task, queued, attempt))
    return permitted


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
