"""Makes room for a pod of higher priority: victims are told why, then deleted.

Source: kube-scheduler v1.36, ``framework/preemption/executor.go``. As there, the Eviction API is not
used: a budget is a preference when victims are chosen, not a wall.
"""

from dataclasses import replace
from typing import Any

from plimsoll.kube.patching import timestamp
from plimsoll.kube.session.errors import APIError
from plimsoll.kube.session.session import STRATEGIC_PATCH, Session
from plimsoll.kube.session.write_results import answer_of, answered
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: What to do where the operator may not delete pods.
REMEDY = (
    "set preemption.viaEviction in the policy, or grant deploy/enforce/preempting.yaml"
    " (preemption.byDeletion of the chart)"
)


class PodPreemptor:
    """Deletes victims."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def preempt(self, victim: Pod, scheduler: str) -> WriteResult:
        """Mark the victim as a target of disruption, then delete this very pod."""
        path = f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}"
        condition: dict[str, Any] = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{scheduler}: preempting to accommodate a higher priority pod",
            "lastTransitionTime": timestamp(self._clock.now()),
        }
        if victim.metadata.generation:
            condition["observedGeneration"] = victim.metadata.generation
        body = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        marked = await answered(
            self._session.request("PATCH", f"{path}/status", body, content_type=STRATEGIC_PATCH)
        )
        if not marked.is_done:
            return marked  # nobody is deleted without being told why
        try:
            await self._session.request("DELETE", path, {"preconditions": {"uid": victim.uid}})
        except APIError as exc:
            answer = answer_of(exc)
            return replace(answer, message=f"{answer.message}; {REMEDY}") if exc.status == 403 else answer
        return WriteResult(WriteOutcome.DONE)

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Take a lower-priority pod's nominated node away."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        body = {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": None}}
        return await answered(self._session.request("PATCH", path, body, content_type=STRATEGIC_PATCH))
