"""Slips in placing pods: cache, queue, binding and reservations."""

from __future__ import annotations

import asyncio
from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.ports.writes import DONE
from plimsoll.scheduling.binding.binder import BINDING_RETRIES
from simulation.planted.surgery import replaced, tampered


def no_assume(operator: Operator) -> None:
    """A pod counts on its node only when the watch shows it there."""
    replaced(operator.cache, "assume", lambda _: lambda pod, node: None)


def forgets_early(operator: Operator) -> None:
    """The room of an assumed pod is released by the answer to its binding, before the watch shows the pod."""

    def made(finish: Any) -> Any:
        async def finish_and_forget(attempt: Any) -> Any:
            status = await finish(attempt)
            operator.cache.forget(attempt.pod.uid)
            return status

        return finish_and_forget

    replaced(operator.wing.cycle, "finish", made)


def forgets_lost_bindings(operator: Operator) -> None:
    """A binding whose answer was lost counts as failed: the pod's room is free, and it is decided again."""

    async def as_failed(_pod: Any, _node: str, lost: Any) -> Any:
        return lost

    replaced(operator.wing.cycle._binder, "_certain", lambda _: as_failed)


class _Hasty:
    """A clock that sleeps for no longer than between two tries of a binding."""

    def __init__(self, clock: Any) -> None:
        self.monotonic, self._sleep = clock.monotonic, clock.sleep

    async def sleep(self, seconds: float) -> None:
        if seconds <= max(BINDING_RETRIES.pauses_s):
            await self._sleep(seconds)


def gives_room_away_early(operator: Operator) -> None:
    """The room of a pod is free when its next binding is refused, though a lost one may take effect."""
    replaced(operator.wing.cycle._binder, "_clock", _Hasty)


def believes_lost_bindings(operator: Operator) -> None:
    """A binding whose answer was lost counts as done."""

    async def as_done(_pod: Any, _node: str, _lost: Any) -> Any:
        return DONE

    replaced(operator.wing.cycle._binder, "_certain", lambda _: as_done)


def believes_every_binding(operator: Operator) -> None:
    """A binding is never refused, whatever the API server says."""

    def made(bind: Any) -> Any:
        async def bind_or_not(pod: Any, node: str, first: Any = None) -> Any:
            await bind(pod, node, first)
            return DONE

        return bind_or_not

    replaced(operator.wing.cycle._binder, "bind", made)


def binds_any_pod_of_the_name(operator: Operator) -> None:
    """Bindings name no uid."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/binding"):
            body["metadata"].pop("uid", None)
        return method, path, body

    tampered(operator, edit)


def terminating_is_gone(operator: Operator) -> None:
    """A pod that is being deleted takes no room any more."""
    mirror = operator.wing.mirror

    def made(set_pod: Any) -> Any:
        return lambda pod: mirror._drop(pod) if pod.is_terminating else set_pod(pod)

    replaced(mirror, "_set_pod", made)


def never_frees_room(operator: Operator) -> None:
    """Pods that are gone still count."""
    replaced(operator.cache, "remove_pod", lambda _: lambda uid: None)


def tries_once(operator: Operator) -> None:
    """A pod that could not be placed is not tried again."""
    queue = operator.queue

    def drop(uid: str, *_: Any, **__: Any) -> None:
        queue.done(uid)

    replaced(queue, "add_unschedulable_if_not_present", lambda _: drop)


def keeps_reservations(operator: Operator) -> None:
    """Reserved room is never free again, though its holder has it."""
    replaced(operator.wing.pipeline._book, "release_uid", lambda _: lambda uid: None)


def clears_nominations_late(operator: Operator) -> None:
    """A nomination that has ended holds its room for five more minutes."""
    nominator = operator.wing.pipeline._book.nominator

    def made(remove: Any) -> Any:
        return lambda uid: asyncio.get_running_loop().call_later(300.0, remove, uid)

    replaced(nominator, "remove", made)


def keeps_ghosts(operator: Operator) -> None:
    """What is gone from a new list is kept."""
    for each in operator.startup._reflectors:
        replaced(each.known, "end_list", lambda _: lambda: iter(()))


def never_lists_again(operator: Operator) -> None:
    """A watch whose version is too old goes on from now, and what happened meanwhile is missed."""
    for each in operator.startup._reflectors:
        _goes_on_from_now(each)


def _goes_on_from_now(reflector: Any) -> None:
    def made(stream: Any) -> Any:
        async def stream_once() -> None:
            if reflector.listed_from > 0.0:
                reflector._version = "0"
                await reflector._watch()
            else:
                await stream()

        return stream_once

    replaced(reflector, "_stream", made)
