"""Completes or cancels the open records of earlier processes after a start, each exactly once.

The records and the cluster are all there is to go by. A pod that still stands was not evicted, whatever
was about to be sent; one that is gone or on its way out was, and its replacement is awaited.
"""

from collections.abc import Awaitable, Callable

from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.cluster.cache import Cache
from plimsoll.framework import Pod, PodInfo
from plimsoll.ports.clock import Clock
from plimsoll.rebalancing.moves.verifying import Verification
from plimsoll.rebalancing.records.record import Record
from plimsoll.rebalancing.records.store import RecordKeeper

REASON = "Restarted"


async def recover(
    keeper: RecordKeeper,
    verification: Verification,
    cache: Cache,
    clock: Clock,
    *,
    adopt: Callable[[Record], bool],
    surge: Callable[[Record], Awaitable[None]],
    resume: Callable[[Record, PodInfo], Awaitable[bool]],
    hold: Callable[[Record, Pod], None],
) -> None:
    """Read the records and carry each open one on.

    Args:
        keeper: Reads and writes records.
        verification: Awaits replacements of what was evicted.
        cache: The cluster as it is.
        clock: Time.
        adopt: Asked first who sees to an evicted pod's record; true for one that expects no replacement.
        surge: Goes on with a surge that may have been started.
        resume: Asked first who sees to the record of a pod that still stands; true for one that waits for it.
        hold: Keeps the room of an evicted pod's replacement, which is like the pod given.
    """
    await keeper.load()
    for record in keeper.known.values():
        verification.remember(record)
    # Targets are held first: the others may take a while to write.
    for record in sorted(keeper.unfinished(), key=lambda each: each.phase is not Phase.EVICTED):
        await _carry_on(
            record,
            keeper=keeper,
            verification=verification,
            cache=cache,
            clock=clock,
            adopt=adopt,
            surge=surge,
            resume=resume,
            hold=hold,
        )
    keeper.is_recovered = True


async def _carry_on(
    record: Record,
    *,
    keeper: RecordKeeper,
    verification: Verification,
    cache: Cache,
    clock: Clock,
    adopt: Callable[[Record], bool],
    surge: Callable[[Record], Awaitable[None]],
    resume: Callable[[Record, PodInfo], Awaitable[bool]],
    hold: Callable[[Record, Pod], None],
) -> None:
    pod = cache.cluster.pods.get(record.spec.pod.uid)
    if record.phase is None:  # ended between a record and its status
        first = Phase.PREDICTED if record.spec.mode is Mode.DRY_RUN else Phase.PLANNED
        record = await keeper.advance(
            record, first, reason=REASON, message="found without a status after a restart"
        )
        if record.is_finished:
            return
    if record.phase is Phase.PLANNED and record.spec.mode is Mode.APPROVE:
        return  # waits for a person, whichever process asked
    if record.phase is Phase.SURGING:
        await surge(record)
    elif record.phase is Phase.PLANNED:
        await keeper.cancel(record, REASON, "the operator ended before the eviction was sent")
    elif record.phase is Phase.EVICTING and pod is not None and not pod.is_terminating:
        if await resume(record, pod):
            return
        await keeper.cancel(record, REASON, "the operator ended before the eviction was accepted")
    else:
        if record.phase is Phase.EVICTING:
            record = await keeper.advance(
                record, Phase.EVICTED, reason=REASON, message="found evicted after a restart"
            )
        if adopt(record):
            return
        sent = next((each.time for each in record.status.transitions if each.phase is Phase.EVICTING), None)
        owner = record.spec.owner
        known = verification.siblings(owner.uid, sent) if owner else frozenset[str]()
        like = pod.pod if pod is not None else verification.sibling(record)
        if like is not None:
            hold(record, like)  # until the replacement is seen, or given up
        verification.expect(record, known, clock.monotonic(), is_replaced=record.spec.target_node is not None)
