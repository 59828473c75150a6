"""Baselines of an operator at rest: it holds nothing that belongs to no pod, move or policy.

Once the faults are over and nothing has been written for a while, each living process is looked into: its
queues, reservations, deadlines and tasks must be those of a process that has just begun, and it must say that
it is ready. What it remembers of pods that are gone is looked for in all that can be reached from it.
"""

from __future__ import annotations

import asyncio
import gc
import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator
from contextvars import Context
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.rebalancing.moves.state import MoveStage
from simulation.loop import CountedTask, Incarnation

#: Stages in which a move waits for somebody else for as long as that takes; in all others it waits for an
#: answer of the API server.
PATIENT = frozenset(
    {
        MoveStage.PROPOSED,
        MoveStage.WAITING,
        MoveStage.SURGING,
        MoveStage.REVERTING,
        MoveStage.REPLACING,
        MoveStage.LEAVING,
    }
)

#: Tasks without a name that may wait for something more than those of a fresh process do.
WAITERS = 6

#: What a walk through an operator's memory does not enter: it belongs to the program, or to the simulation.
OUTSIDE = (
    str,
    bytes,
    int,
    float,
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
    CodeType,
    Context,
    asyncio.Future,
)

#: Likewise, packages.
AROUND = ("simulation.", "roadstead.", "numpy", "pydantic", "_contextvars")


def tasks_of(tasks: Iterable[object], process: Incarnation) -> Counter[str]:
    """The tasks of a process that have not ended, by their names; those without one by what they run."""
    found: Counter[str] = Counter()
    for task in tasks:
        if isinstance(task, CountedTask) and task.process is process and not task.done():
            name = task.get_name()
            found[f"({_run_by(task)})" if name.startswith("Task-") else name] += 1
    return found


def _run_by(task: CountedTask) -> str:
    coroutine: Any = task.get_coro()
    return str(coroutine.__qualname__)


def stray_tasks(found: Counter[str], fresh: Counter[str]) -> Iterator[str]:
    """How the tasks of a process differ from those of a fresh one of the same part.

    The process itself has its own name, and moves under way have tasks.
    """
    for name in sorted(found.keys() | fresh.keys()):
        if name.startswith("(") or re.fullmatch(r"(red|blue)\.\d+", name):
            continue
        if found[name] != fresh[name]:
            yield f"{found[name]} tasks {name!r}, where a fresh process has {fresh[name]}"
    waiting = [sum(count for name, count in of.items() if name.startswith("(")) for of in (found, fresh)]
    if waiting[0] > waiting[1] + WAITERS:
        more = ", ".join(f"{count} {name}" for name, count in (found - fresh).items() if name.startswith("("))
        yield f"{waiting[0]} tasks without a name, where a fresh process has {waiting[1]}: {more}"


def leftovers(operator: Operator, records: Collection[str]) -> Iterator[str]:
    """What a process at rest still holds, in sentences.

    Args:
        operator: One that has written nothing for a while.
        records: ``namespace/name`` of those that exist.
    """
    yield from _of_scheduling(operator)
    yield from _of_moves(operator, records)
    if operator.fence.under_way:
        yield f"{operator.fence.under_way} writes wait for their answers"
    if problem := operator.unready():
        yield f"it is not ready: {problem}"
    else:
        yield from idle_leader(operator.fence.seconds_left(), leads=operator.leadership.acquired.is_set())


def idle_leader(seconds_left: float, *, leads: bool) -> Iterator[str]:
    """Whether a process that says it is ready leads, and sends no write; or would send one as a standby.

    Args:
        seconds_left: Those for which its fence is open.
        leads: Whether it does.
    """
    if leads and not seconds_left:
        yield "it says that it is ready and leads, and its fence is shut"
    if seconds_left and not leads:
        yield "it stands by, and its fence is open"


def _of_scheduling(operator: Operator) -> Iterator[str]:
    queue, cache, pipeline = operator.queue, operator.cache, operator.wing.pipeline
    depths = queue.depths()
    if operator.leadership.acquired.is_set():
        for name in ("active", "backoff"):
            if depths[name]:
                yield f"{depths[name]} pods are in the {name} queue"
        held = {each.pod.uid for each in operator.wing.cycle.permits}
        if landed := sorted(cache.assumed.keys() - held):
            yield f"pods are assumed that nothing binds: {landed}"
        if pipeline.in_flight > len(held):
            yield f"{pipeline.in_flight} bindings are in flight"
    flying = [each.pod.key for each in queue._in_flight]
    if flying:
        yield f"pods are in flight in the queue: {flying}"
    if ghosts := [each.pod.key for each in queue if each.pod.uid not in cache.waiting]:
        yield f"pods are queued that do not wait: {ghosts}"
    book = pipeline._book
    moves = operator.rebalancing.executor.machine.open
    for uid, reservation in book._by_uid.items():
        if uid not in cache.waiting and reservation.holder.key not in moves:
            why = f"for {uid}, {reservation.reason}"
            yield f"room on {reservation.node} is reserved {why}, and no pod waits for it"
    for node, nominated in book.nominator.by_node.items():
        for uid in sorted(nominated.keys() - book._by_uid.keys()):
            yield f"room on {node} is held for {uid}, whose reservation has ended"


def _of_moves(operator: Operator, records: Collection[str]) -> Iterator[str]:
    executor, timer = operator.rebalancing.executor, operator.parts.timer
    machine = executor.machine
    for key, state in machine.open.items():
        if state.stage not in PATIENT:
            yield f"the move {key} is still {state.stage.name}"
    if not executor.is_idle() or executor._tasks:
        yield f"instructions about moves are not carried out: {sorted(executor._waiting)}"
    if forgotten := sorted(machine.moves.keys() - machine.open.keys() - set(records)):
        yield f"moves are remembered whose records are gone: {forgotten}"
    known = operator.rebalancing.keeper.known
    if forgotten := sorted(known.keys() - set(records)):
        yield f"records are remembered that are gone: {forgotten}"
    if stale := [uid for uid, of in known._by_pod.items() if not of or not of.keys() <= known.keys()]:
        yield f"pods are indexed whose records are gone: {stale}"
    most = (
        8 + 4 * len(machine.open) + 4 * len(operator.queue.among([each.pod.uid for each in operator.queue]))
    )
    if len(timer) > most:
        yield f"{len(timer)} deadlines are set, where {most} would do"


# -- memory ------------------------------------------------------------------------------------------------


def remembered(root: object, uids: set[str]) -> dict[str, int]:
    """Where keys of collections are uids of these, by the path from an object; how many of them.

    Args:
        root: Where the walk begins.
        uids: Of objects that have been gone for a while.
    """
    found: Counter[str] = Counter()
    seen, outside = {id(root)}, _Outside()
    left: deque[tuple[object, str]] = deque([(root, type(root).__name__)])
    while left:
        at, path = left.popleft()
        if isinstance(at, dict | set | frozenset) and (known := len(uids.intersection(at))):
            found[path] += known
        for inner, name in _inside(at):
            if id(inner) not in seen and not outside[type(inner)]:
                seen.add(id(inner))
                left.append((inner, f"{path}{name}"))
    return dict(found)


def _inside(at: object) -> Iterator[tuple[object, str]]:
    """What an object refers to, with the way there."""
    if isinstance(at, MethodType):
        yield at.__self__, ""
        return
    if isinstance(at, dict):
        for key, value in at.items():
            yield key, "{}"
            yield value, "[]"
        return
    if isinstance(at, list | tuple | set | frozenset | deque):
        for value in at:
            yield value, "[]"
        return
    try:
        attributes = vars(at)
    except TypeError:
        attributes = {}
    for inner in gc.get_referents(at):
        if inner is attributes:
            yield from ((value, f".{name}") for name, value in attributes.items())
        else:
            yield inner, f".({type(inner).__name__})"


class _Outside(dict[type, bool]):
    """Whether objects of a class belong to the program, or to what is around the operator."""

    def __missing__(self, kind: type) -> bool:
        """Look at a class for the first time."""
        self[kind] = issubclass(kind, OUTSIDE) or kind.__module__.startswith(AROUND)
        return self[kind]
