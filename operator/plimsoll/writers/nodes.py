"""Writes the taints that close a node while it is emptied or unhealthy, or have it avoided before."""

from collections.abc import Callable
from typing import Any

from plimsoll.kube.session.errors import APIError, Conflict, answer_of, readable
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.model.taints import CONSOLIDATING, NO_SCHEDULE, PREFER_NO_SCHEDULE
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.writers.pods import timestamp

#: Maximum number of attempts to read and write a node: kubelets update nodes all the time.
TRIES = 5

Taints = list[dict[str, Any]]


class NodeTainter:
    """Sets and removes one of our taints; other taints stay as they are."""

    def __init__(self, session: Session, clock: Clock, key: str = CONSOLIDATING) -> None:
        self._session = session
        self._clock = clock
        self._key = key

    async def close(self, node: str) -> WriteResult:
        """Set the taint."""
        ours = self._taint(NO_SCHEDULE)
        return await self._change(node, lambda others, _: [*others, ours])

    async def avoid(self, node: str) -> WriteResult:
        """Set the taint so that pods go elsewhere if they can; a closed node stays closed."""
        ours = self._taint(PREFER_NO_SCHEDULE)
        return await self._change(node, lambda others, present: [*others, *(present or [ours])])

    async def reopen(self, node: str) -> WriteResult:
        """Remove the taint."""
        return await self._change(node, lambda others, _: others)

    def _taint(self, effect: str) -> dict[str, Any]:
        return {"key": self._key, "effect": effect, "timeAdded": timestamp(self._clock.now())}

    async def _change(self, node: str, changed: Callable[[Taints, Taints], Taints]) -> WriteResult:
        """Write the changed list of taints, unless the node has changed since it was read."""
        answer, path = WriteResult(WriteOutcome.CONFLICT), f"/api/v1/nodes/{node}"
        for _ in range(TRIES):
            try:
                present = await self._session.object("GET", path)
                with readable(f"GET {path}"):
                    taints: Taints = present["spec"].get("taints") or []
                    ours = [each for each in taints if each["key"] == self._key]
                    wanted = changed([each for each in taints if each["key"] != self._key], ours)
                    version = present["metadata"]["resourceVersion"]
                if wanted == taints:
                    return WriteResult(WriteOutcome.DONE)
                body = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted}}
                await self._session.request("PATCH", path, body, content_type=MERGE_PATCH)
            except Conflict as exc:
                answer = answer_of(exc)
            except APIError as exc:
                return answer_of(exc)
            else:
                return WriteResult(WriteOutcome.DONE)
        return answer
