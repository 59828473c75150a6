"""PATCH pods/status: why a pod is not scheduled; and the status of policies."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from plimsoll.kube.session.session import MERGE_PATCH, STRATEGIC_PATCH, Session
from plimsoll.kube.session.write_results import answered
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.pods import ConditionUpdate
from plimsoll.ports.writes import WriteResult

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"


def timestamp(seconds: float) -> str:
    """RFC 3339 in whole seconds, as the API writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PodStatusPatcher:
    """Writes ``PodScheduled=False`` and the nominated node."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Set the condition; its transition time moves only if its status does."""
        old = next((each for each in pod.status.conditions if each.type == "PodScheduled"), None)
        written: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": condition.reason,
            "message": condition.message,
        }
        if old is None or old.status != "False":
            written["lastTransitionTime"] = timestamp(self._clock.now())
        if pod.metadata.generation:
            written["observedGeneration"] = pod.metadata.generation
        status: dict[str, Any] = {"conditions": [written]}
        if condition.nominated_node is not None:
            status["nominatedNodeName"] = condition.nominated_node or None
        return await self._patch(pod, status)

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Set the nominated node."""
        return await self._patch(pod, {"nominatedNodeName": node})

    async def _patch(self, pod: Pod, status: Mapping[str, Any]) -> WriteResult:
        """Merge into the status of this very pod."""
        body = {"metadata": {"uid": pod.uid}, "status": status}
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        return await answered(self._session.request("PATCH", path, body, content_type=STRATEGIC_PATCH))


class PolicyStatusPatcher:
    """Writes what the operator says of a policy."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def write_status(self, name: str, status: Mapping[str, Any]) -> WriteResult:
        """Merge into the policy's status."""
        return await answered(
            self._session.request(
                "PATCH", f"{POLICIES}/{name}/status", {"status": status}, content_type=MERGE_PATCH
            )
        )
