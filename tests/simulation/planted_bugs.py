"""Planted bugs: variants of the operator, each with one fault, that the checker must find.

Each breaks an operator that was just built, in the object where such a slip would be, or what it sends. They
keep the checker honest: ``make simulate ARGS=--planted`` looks for a seed that finds each, and runs that
without the fault, which must find nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from plimsoll.app.operator import Operator
from plimsoll.ports.writes import DONE
from simulation.exchanges import Answer
from simulation.faults import FaultKind
from simulation.faults import FaultKind as K

#: Edits a request before it is sent: method, path and body; or answers in the API server's stead.
Edit = Callable[[str, str, Any], "tuple[str, str, Any] | Answer"]


def _tampered(operator: Operator, edit: Edit) -> None:
    """Every request of this operator passes the edit."""
    transport: Any = operator.session._transport
    send = transport.exchange

    async def exchange(method: str, path: str, content: bytes | None, headers: Any, **options: Any) -> Answer:
        edited = edit(method, path, None if content is None else orjson.loads(content))
        if len(edited) == 2:
            options["gate"]()
            return edited
        method, path, body = edited
        sent: Answer = await send(
            method, path, None if body is None else orjson.dumps(body), headers, **options
        )
        return sent

    transport.exchange = exchange


def no_assume(operator: Operator) -> None:
    """A pod counts on its node only when the watch shows it there."""
    operator.cache.assume = lambda pod, node: None  # type: ignore[method-assign] # that is the bug


def forgets_early(operator: Operator) -> None:
    """The room of an assumed pod is released by the answer to its binding, before the watch shows the pod."""
    cycle: Any = operator.wing.cycle
    finish = cycle.finish

    async def finish_and_forget(attempt: Any) -> Any:
        status = await finish(attempt)
        operator.cache.forget(attempt.pod.uid)
        return status

    cycle.finish = finish_and_forget


def terminating_is_gone(operator: Operator) -> None:
    """A pod that is being deleted takes no room any more."""
    mirror: Any = operator.wing.mirror
    set_pod = mirror._set_pod

    def set_unless_terminating(pod: Any) -> None:
        if pod.is_terminating:
            mirror._drop(pod)
        else:
            set_pod(pod)

    mirror._set_pod = set_unless_terminating


def binds_any_pod_of_the_name(operator: Operator) -> None:
    """Bindings name no uid."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/binding"):
            body["metadata"].pop("uid", None)
        return method, path, body

    _tampered(operator, edit)


def evicts_any_pod_of_the_name(operator: Operator) -> None:
    """Evictions have no precondition."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/eviction"):
            body.pop("deleteOptions", None)
        return method, path, body

    _tampered(operator, edit)


def deletes_instead_of_evicting(operator: Operator) -> None:
    """Budgets are not asked."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/eviction"):
            return "DELETE", path.removesuffix("/eviction"), {}
        return method, path, body

    _tampered(operator, edit)


def evicts_before_the_record(operator: Operator) -> None:
    """The phase Evicting is written when the pod is gone."""

    def edit(method: str, path: str, body: Any) -> Any:
        if "/evictions/" in path and method == "PATCH" and body["status"].get("phase") == "Evicting":
            return 200, b"{}"
        return method, path, body

    _tampered(operator, edit)


def keeps_no_records(operator: Operator) -> None:
    """Records are kept in memory."""

    def edit(method: str, path: str, body: Any) -> Any:
        if "plimsoll.dev" in path and "/evictions" in path and method != "GET":
            return 200, b"{}"
        return method, path, body

    _tampered(operator, edit)


def believes_every_binding(operator: Operator) -> None:
    """A binding is never refused, whatever the API server says."""
    binder: Any = operator.wing.cycle._binder
    bind = binder.bind

    async def bind_or_not(pod: Any, node: str) -> Any:
        await bind(pod, node)
        return DONE

    binder.bind = bind_or_not


def tries_once(operator: Operator) -> None:
    """A pod that could not be placed is not tried again."""
    queue: Any = operator.queue

    def drop(uid: str, *_: Any, **__: Any) -> None:
        queue.done(uid)

    queue.add_unschedulable_if_not_present = drop


def fence_without_end(operator: Operator) -> None:
    """A leader writes until it notices that it leads no more."""
    operator.fence.seconds_left = lambda: 60.0  # type: ignore[method-assign] # that is the bug


def takes_the_lease_early(operator: Operator) -> None:
    """A candidate does not wait until the lease has expired."""
    election: Any = operator.leadership._elected._election  # type: ignore[attr-defined] # the election's own
    election._expiry = lambda: election._observed_at + 1.0


def trusts_an_old_watch(operator: Operator) -> None:
    """A new leader does not list again what the old one wrote."""

    async def immediately(since: float) -> None:
        return

    operator.startup.until_listed = immediately  # type: ignore[method-assign] # that is the bug


def never_frees_room(operator: Operator) -> None:
    """Pods that are gone still count."""
    operator.cache.remove_pod = lambda uid: None  # type: ignore[method-assign] # that is the bug


def keeps_ghosts(operator: Operator) -> None:
    """What is gone from a new list is kept."""
    reflectors: Any = operator.startup._reflectors
    for each in reflectors:
        each._objects.end_list = lambda: iter(())


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A variant, and where to look for a run that finds it.

    Attributes:
        seed: The first one to try; another one finds it when the operator has changed.
        kinds: The kinds of faults of that run; None draws them by the seed.
    """

    mutate: Callable[[Operator], None]
    seed: int
    kinds: frozenset[FaultKind] | None = None


#: In the order in which a pod, then a move, meets them.
PLANTED = (
    PlantedBug(no_assume, 1),
    PlantedBug(forgets_early, 1, frozenset({K.WATCH_LAG, K.WORKLOAD_SCALED, K.POD_DELETED})),
    PlantedBug(terminating_is_gone, 9),
    PlantedBug(never_frees_room, 1),
    PlantedBug(believes_every_binding, 2),
    PlantedBug(tries_once, 2),
    PlantedBug(binds_any_pod_of_the_name, 1),
    PlantedBug(
        keeps_ghosts,
        18,
        frozenset({K.COMPACTION, K.WATCH_CUT, K.POD_DELETED, K.WORKLOAD_SCALED, K.API_RESTART}),
    ),
    PlantedBug(
        trusts_an_old_watch,
        9,
        frozenset({K.REPLICA_STOPPED, K.WATCH_LAG, K.WORKLOAD_SCALED, K.POD_DELETED}),
    ),
    PlantedBug(fence_without_end, 1, frozenset({K.REPLICA_PAUSED, K.WORKLOAD_SCALED, K.POD_DELETED})),
    PlantedBug(takes_the_lease_early, 1),
    PlantedBug(keeps_no_records, 1, frozenset({K.NODE_TAINTED, K.WORKLOAD_SCALED})),
    PlantedBug(evicts_before_the_record, 10),
    PlantedBug(evicts_any_pod_of_the_name, 10),
    PlantedBug(deletes_instead_of_evicting, 10),
)
