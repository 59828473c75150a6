"""Plugins that misbehave, each in one way: raising, returning the wrong thing, changing, or never returning.

``WAYS`` is the table; a row is a class with one method of one extension point.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from plimsoll.framework import (
    SUCCESS,
    ActionType,
    Code,
    Declares,
    EventWithHint,
    NoArgs,
    Nomination,
    PermitResult,
    PreFilterResult,
    Reads,
    Status,
    unschedulable,
)


class Way(NamedTuple):
    """One way to misbehave.

    Attributes:
        name: Of the way, the plugin and the scheduler name that uses it.
        plugin: Its class.
        cpu: Of its pod: more than any node has, where only a pod that fits nowhere is asked about.
        binds: Whether its pod is bound nevertheless, because it misbehaves where no pod depends on it.
    """

    name: str
    plugin: type
    cpu: str = "10m"
    binds: bool = False


class Unprintable(Exception):
    """An exception that raises when it is printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


def raising(exception: BaseException) -> Callable[..., Any]:
    """A method that raises."""

    def method(*_: Any) -> Any:
        raise exception

    return method


def returning(answer: Any) -> Callable[..., Any]:
    """A method that returns this."""
    return lambda *_: answer


def zeros(_self: Any, _state: Any, _pod: Any, snapshot: Any) -> Any:
    """Every node is feasible."""
    return np.zeros(len(snapshot), dtype=np.int64)


def ones(_self: Any, _state: Any, _pod: Any, snapshot: Any) -> Any:
    """No node is feasible."""
    return np.ones(len(snapshot), dtype=np.int64)


def changing(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A filter that accepts all nodes, after it has changed what it was shown: ``change(pod, snapshot)``."""

    def method(_self: Any, _state: Any, pod: Any, snapshot: Any) -> Any:
        change(pod, snapshot)
        return np.zeros(len(snapshot), dtype=np.int64)

    return method


def seized(array: Any) -> None:
    """Make an array writable, and write to it."""
    array.flags.writeable = True
    array[:] = 0


async def endless(*_: Any) -> Status:
    """Never return."""
    await asyncio.Event().wait()
    return SUCCESS


async def stubborn(*_: Any) -> Status:
    """Never return, not even when cancelled; the test ends it at last."""
    for _cancellation in range(3):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
    return SUCCESS


def later(answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same, awaited."""

    async def method(*args: Any) -> Any:
        await asyncio.sleep(0)
        return answer(*args)

    return method


def a_way(name: str, cpu: str = "10m", *, binds: bool = False, **members: Any) -> Way:
    """A row: a class with these members."""
    members = {"args_model": NoArgs, "__init__": lambda _self, _args: None, **members}
    return Way(name, type(name, (), {"name": name, **members}), cpu, binds)


def a_filter(name: str, method: Callable[..., Any], **more: Any) -> Way:
    """A row of Filter."""
    return a_way(
        name,
        **{
            "filter": method,
            "refusal": returning(unschedulable("no")),
            **more,
        },
    )


def a_score(name: str, method: Callable[..., Any], **more: Any) -> Way:
    """A row of Score."""
    return a_way(name, score=method, **more)


def a_pre_bind(name: str, method: Callable[..., Any]) -> Way:
    """A row of PreBind."""
    return a_way(name, pre_bind_preflight=returning(SUCCESS), pre_bind=method)


def a_reserve(name: str, method: Callable[..., Any], **more: Any) -> Way:
    """A row of Reserve."""
    return a_way(name, **{"reserve": method, "unreserve": returning(None), **more})


#: More cpu than a node has.
TOO_MUCH = "1000"

BOOM = ValueError("boom")

FILTERS = (
    a_filter("filter-raises", raising(BOOM)),
    a_filter("filter-exits", raising(SystemExit(3))),
    a_filter("filter-interrupts", raising(KeyboardInterrupt())),
    a_filter("filter-cancels", raising(asyncio.CancelledError())),
    a_filter("filter-stops-a-generator", raising(GeneratorExit())),
    a_filter("filter-raises-what-cannot-be-printed", raising(Unprintable())),
    a_filter("filter-returns-none", returning(None)),
    a_filter("filter-returns-a-list", returning([0, 0, 0])),
    a_filter("filter-returns-another-shape", lambda *_: np.zeros(7, dtype=np.int64)),
    a_filter("filter-returns-floats", lambda *_: np.zeros(3)),
    a_filter("filter-returns-nan", lambda *_: np.full(3, np.nan)),
    a_filter("refusal-raises", ones, refusal=raising(BOOM)),
    a_filter("refusal-returns-none", ones, refusal=returning(None)),
    a_filter("refusal-returns-a-list", ones, refusal=returning(["no"])),
    a_filter("refusal-accepts", ones, refusal=returning(SUCCESS)),
    a_filter("refusal-has-no-texts", ones, refusal=returning(Status(Code.UNSCHEDULABLE, (["no"],)))),  # type: ignore[arg-type] # what it is about
)

CHANGES = (
    a_filter("clears-the-nodes", changing(lambda _, snapshot: snapshot.nodes.clear())),
    a_filter("reorders-the-nodes", changing(lambda _, snapshot: snapshot.nodes.reverse())),
    a_filter("clears-the-taints", changing(lambda _, snapshot: snapshot.taint_sets.clear())),
    a_filter("writes-allocatable", changing(lambda _, snapshot: seized(snapshot.allocatable))),
    a_filter("writes-requested", changing(lambda _, snapshot: seized(snapshot.requested))),
    a_filter("writes-nonzero-requests", changing(lambda _, snapshot: seized(snapshot.nonzero_requested))),
    a_filter("writes-unschedulable", changing(lambda _, snapshot: seized(snapshot.unschedulable))),
    a_filter("writes-taint-ids", changing(lambda _, snapshot: seized(snapshot.taint_ids))),
    a_filter(
        "writes-label-ids", changing(lambda _, snapshot: seized(snapshot.label_ids("kubernetes.io/hostname")))
    ),
    a_filter("writes-capacities", changing(lambda _, snapshot: seized(snapshot.capacity((0, 1)).doubles))),
    a_filter(
        "writes-kept-columns",
        changing(lambda _, snapshot: seized(snapshot.kept("mine", lambda part: part.allocatable[:, 0]))),
    ),
    a_filter("codes-a-label", changing(lambda _, snapshot: snapshot.label("zone").set(0, "elsewhere"))),
    a_filter("sets-the-snapshot", changing(lambda _, snapshot: setattr(snapshot, "nodes", ()))),
    a_filter("relabels-the-pod", changing(lambda pod, _: pod.labels.update(app="db"))),
    a_filter("annotates-the-pod", changing(lambda pod, _: pod.pod.metadata.annotations.clear())),
    a_filter("lowers-the-requests", changing(lambda pod, _: pod.requests.update(cpu=0))),
    a_filter(
        "lowers-the-requests-of-the-template", changing(lambda pod, _: pod.template.requests.update(cpu=0))
    ),
    a_filter(
        "replaces-the-requests-of-the-template",
        changing(lambda pod, _: setattr(pod.template, "requests", {})),
    ),
    a_filter("tolerates-all", changing(lambda pod, _: setattr(pod.pod.spec, "tolerations", ()))),
    a_filter(
        "replaces-the-pod",
        changing(
            lambda pod, _: setattr(
                pod,
                "pod",
                msgspec.structs.replace(pod.pod, spec=msgspec.structs.replace(pod.pod.spec, tolerations=())),
            )
        ),
    ),
    a_filter(
        "lowers-the-requests-of-the-container",
        changing(lambda pod, _: pod.pod.spec.containers[0].resources.requests.update(cpu="0")),
    ),
    a_filter("relabels-a-node", changing(lambda _, snapshot: snapshot.node(0).labels.clear())),
    a_filter(
        "enlarges-a-node", changing(lambda _, snapshot: snapshot.node(0).status.allocatable.update(cpu="9"))
    ),
    a_filter("forgets-namespaces", changing(lambda _, snapshot: snapshot.objects.namespaces.clear())),
    a_filter("forgets-a-kind", changing(lambda _, snapshot: setattr(snapshot.objects, "claims", {}))),
    a_filter("sets-the-version", changing(lambda _, snapshot: setattr(snapshot.objects, "version", 0))),
)

DECISIONS = (
    a_way("pre-enqueue-raises", pre_enqueue=raising(BOOM)),
    a_way("pre-enqueue-exits", pre_enqueue=raising(SystemExit(3))),
    a_way("pre-enqueue-returns-none", pre_enqueue=returning(None)),
    a_way("pre-filter-raises", pre_filter=raising(BOOM)),
    a_way("pre-filter-exits", pre_filter=raising(SystemExit(3))),
    a_way("pre-filter-returns-none", pre_filter=returning(None)),
    a_way("pre-filter-returns-a-list", pre_filter=returning([])),
    a_way("pre-filter-returns-a-word", pre_filter=returning(Status("Fine"))),  # type: ignore[arg-type] # what it is about
    a_way("pre-filter-allows-a-list", pre_filter=returning(PreFilterResult(["n0"]))),  # type: ignore[arg-type] # likewise
    a_way("post-filter-raises", TOO_MUCH, post_filter=raising(BOOM)),
    a_way("post-filter-returns-none", TOO_MUCH, post_filter=returning(None)),
    a_way("post-filter-nominates-no-node", TOO_MUCH, post_filter=returning(Nomination(SUCCESS, "ghost"))),
    a_way("pre-score-raises", pre_score=raising(BOOM)),
    a_way("pre-score-returns-none", pre_score=returning(None)),
    a_score("score-raises", raising(BOOM)),
    a_score("score-exits", raising(SystemExit(3))),
    a_score("score-returns-none", returning(None)),
    a_score("score-returns-a-list", returning([1, 2, 3])),
    a_score("score-returns-another-shape", lambda *_: np.zeros(7, dtype=np.int64)),
    a_score("score-returns-nan", lambda *_: np.full(3, np.nan)),
    a_score("score-returns-too-much", lambda *_: np.full(3, 101)),
    a_score("score-returns-too-little", lambda *_: np.full(3, -1)),
    a_score("normalize-returns-none", zeros, normalize=returning(None)),
    a_score("normalize-returns-another-shape", zeros, normalize=lambda *_: np.zeros(7, dtype=np.int64)),
    a_filter("signature-raises", zeros, declares=Declares(reads=Reads.NODE), signature=raising(BOOM)),
    a_filter("failure-raises", zeros, failure=raising(BOOM)),
    a_filter("version-raises", zeros, declares=Declares(reads=Reads.CLUSTER), result_version=raising(BOOM)),
    a_filter(
        "local-version-raises", zeros, declares=Declares(reads=Reads.NODE), result_version=raising(BOOM)
    ),
    a_filter("prepare-raises", zeros, prepare=raising(BOOM)),
)

BINDINGS = (
    a_reserve("reserve-raises", raising(BOOM)),
    a_reserve("reserve-exits", raising(SystemExit(3))),
    a_reserve("reserve-returns-none", returning(None)),
    a_reserve("unreserve-exits", returning(unschedulable("no")), unreserve=raising(SystemExit(3))),
    a_way("permit-raises", permit=raising(BOOM)),
    a_way("permit-returns-none", permit=returning(None)),
    a_way("permit-returns-a-status", permit=returning(SUCCESS)),
    a_way("permit-waits-for-nan", permit=returning(PermitResult(Status(Code.WAIT), float("nan")))),
    a_way("permit-waits-for-a-word", permit=returning(PermitResult(Status(Code.WAIT), "1m"))),  # type: ignore[arg-type] # what it is about
    a_pre_bind("pre-bind-raises", later(raising(BOOM))),
    a_pre_bind("pre-bind-exits", later(raising(SystemExit(3)))),
    a_pre_bind("pre-bind-cancels-itself", later(raising(asyncio.CancelledError()))),
    a_pre_bind("pre-bind-returns-none", later(returning(None))),
    a_pre_bind("pre-bind-is-not-awaitable", returning(SUCCESS)),
    a_way("preflight-exits", pre_bind_preflight=raising(SystemExit(3)), pre_bind=endless),
    a_way("bind-raises", bind=later(raising(BOOM))),
    a_way("bind-exits", bind=later(raising(SystemExit(3)))),
    a_way("bind-returns-none", bind=later(returning(None))),
    a_way("post-bind-exits", binds=True, post_bind=raising(SystemExit(3))),
    a_way(
        "registers-none",
        binds=True,
        filter=zeros,
        refusal=returning(None),
        events_to_register=returning(None),
    ),
    a_way(
        "registers-exits",
        binds=True,
        filter=zeros,
        refusal=returning(None),
        events_to_register=raising(SystemExit(3)),
    ),
    a_filter(
        "hint-exits",
        ones,
        events_to_register=returning((EventWithHint("*", ActionType.ALL, raising(SystemExit(3))),)),
    ),
)

#: They never return.
HANGING = (
    a_pre_bind("pre-bind-hangs", endless),
    a_pre_bind("pre-bind-ignores-its-cancellation", stubborn),
    a_way("bind-hangs", bind=endless),
)

WAYS = (*FILTERS, *CHANGES, *DECISIONS, *BINDINGS)
