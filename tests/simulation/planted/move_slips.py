"""Slips in moving pods: records, evictions, permissions of policies."""

from __future__ import annotations

from typing import Any

from plimsoll.app.operator import Operator
from plimsoll.ports.writes import DONE
from plimsoll.rebalancing.moves import events, instructions
from simulation.planted.surgery import replaced, tampered


def _phase(method: str, path: str, body: Any) -> str:
    """The phase that a request writes into a record, "" for none."""
    if "/evictions/" not in path or method != "PATCH":
        return ""
    return str((body.get("status") or {}).get("phase") or "")


def keeps_no_records(operator: Operator) -> None:
    """Records are kept in memory."""

    def edit(method: str, path: str, body: Any) -> Any:
        if "plimsoll.dev" in path and "/evictions" in path and method != "GET":
            return 200, b"{}"
        return method, path, body

    tampered(operator, edit)


def evicts_before_the_record(operator: Operator) -> None:
    """The phase Evicting is written when the pod is gone."""

    def edit(method: str, path: str, body: Any) -> Any:
        if _phase(method, path, body) == "Evicting":
            return 200, b"{}"
        return method, path, body

    tampered(operator, edit)


def settles_before_the_replacement(operator: Operator) -> None:
    """A record is Settled as soon as the pod has left."""

    def edit(method: str, path: str, body: Any) -> Any:
        if _phase(method, path, body) == "Evicted":
            body["status"]["phase"] = "Settled"
        return method, path, body

    tampered(operator, edit)


def writes_any_version(operator: Operator) -> None:
    """A record is written whatever has been written since."""

    def edit(method: str, path: str, body: Any) -> Any:
        if _phase(method, path, body):
            body.pop("metadata", None)
        return method, path, body

    tampered(operator, edit)


def never_closes_records(operator: Operator) -> None:
    """What has become of a move is not written."""

    def edit(method: str, path: str, body: Any) -> Any:
        if _phase(method, path, body) in ("Settled", "Returned", "Failed", "Blocked", "Cancelled", "Evicted"):
            return 200, b"{}"
        return method, path, body

    tampered(operator, edit)


def evicts_any_pod_of_the_name(operator: Operator) -> None:
    """Evictions have no precondition."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/eviction"):
            body.pop("deleteOptions", None)
        return method, path, body

    tampered(operator, edit)


def deletes_instead_of_evicting(operator: Operator) -> None:
    """Budgets are not asked."""

    def edit(method: str, path: str, body: Any) -> Any:
        if path.endswith("/eviction"):
            return "DELETE", path.removesuffix("/eviction"), {}
        return method, path, body

    tampered(operator, edit)


def believes_every_eviction(operator: Operator) -> None:
    """An eviction is never refused, also not by 429."""

    def made(awaited: Any) -> Any:
        evict = awaited[instructions.Evict]

        async def evict_or_not(order: instructions.Evict) -> events.Event:
            await evict(order)
            return events.EvictionAnswered(order.key, DONE)

        return {**awaited, instructions.Evict: evict_or_not}

    replaced(operator.rebalancing.executor, "_awaited", made)


def counts_each_run_alone(operator: Operator) -> None:
    """Limits count from zero in each run: what left before is not counted."""
    wing = operator.rebalancing
    replaced(wing.runs.inputs.keeper, "sent_within", lambda _: lambda policy, seconds: 0)
    replaced(wing.executor.machine, "left", lambda _: lambda policy: 0)
    replaced(wing.executor.machine, "in_flight", lambda _: dict)
