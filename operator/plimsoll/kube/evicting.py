"""POST pods/eviction; a 429 that names a budget is a PodDisruptionBudget saying no."""

import re
from dataclasses import replace

from plimsoll.kube.session.errors import APIError, TooManyRequests
from plimsoll.kube.session.session import Session
from plimsoll.kube.session.write_results import answer_of
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.writes import WriteOutcome, WriteResult

#: The cause by which the API server says that a budget refused.
BUDGET_CAUSE = "DisruptionBudget"

_NAMED = re.compile(r"disruption budget (\S+)")


class PodEvictor:
    """Evicts pods through the Eviction API, and in no other way."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def evict(self, pod: Pod) -> WriteResult:
        """Evict this very pod: the uid precondition spares a later pod of the same name."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
        try:
            await self._session.request("POST", path, body)
        except TooManyRequests as exc:
            causes = exc.details.get("causes") or ()
            said = next((cause for cause in causes if cause.get("reason") == BUDGET_CAUSE), None)
            if said is None:
                return answer_of(exc)
            named = _NAMED.search(str(said.get("message", "")))
            return replace(
                answer_of(exc),
                verdict=WriteOutcome.BLOCKED,
                budget=f"{pod.namespace}/{named[1]}" if named else "",
                message=str(said.get("message") or exc.message),
            )
        except APIError as exc:
            return answer_of(exc)
        return WriteResult(WriteOutcome.DONE)
