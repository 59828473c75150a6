"""GET and PATCH nodes: the taint that closes a node while it is being emptied, and nothing else of it."""

from collections.abc import Callable
from typing import Any

from plimsoll.kube.pods import timestamp
from plimsoll.kube.session.errors import APIError, Conflict, answer_of
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: Attempts to read and write a node that changes meanwhile; kubelets change it all the time.
TRIES = 5

Taints = list[dict[str, Any]]


class NodeTainter:
    """Sets and removes our taint; other taints stay as they are."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def close(self, node: str) -> WriteResult:
        """Set the taint."""
        ours = {
            "key": CONSOLIDATING,
            "effect": "NoSchedule",
            "timeAdded": timestamp(self._clock.now()),
        }
        return await self._change(node, lambda others: [*others, ours])

    async def reopen(self, node: str) -> WriteResult:
        """Remove it."""
        return await self._change(node, lambda others: others)

    async def _change(self, node: str, changed: Callable[[Taints], Taints]) -> WriteResult:
        """Write the list of taints, unless the node has changed since it was read."""
        path = f"/api/v1/nodes/{node}"
        answer = WriteResult(WriteOutcome.CONFLICT)
        for _ in range(TRIES):
            try:
                present = await self._session.object("GET", path)
                taints: Taints = present["spec"].get("taints") or []
                wanted = changed([each for each in taints if each["key"] != CONSOLIDATING])
                if wanted == taints:
                    return WriteResult(WriteOutcome.DONE)
                body = {
                    "metadata": {"resourceVersion": present["metadata"]["resourceVersion"]},
                    "spec": {"taints": wanted},
                }
                await self._session.request("PATCH", path, body, content_type=MERGE_PATCH)
            except Conflict as exc:
                answer = answer_of(exc)
            except APIError as exc:
                return answer_of(exc)
            else:
                return WriteResult(WriteOutcome.DONE)
        return answer
