"""ConditionPromise: at the end the condition PodScheduled of each pod says what is true."""

from __future__ import annotations

from collections.abc import Iterator

from promises.commits import Obj
from promises.lives import PodLives
from promises.pods import condition_of, is_leaving, is_over, node_of
from promises.view import View

CLAIMS = "resourceclaims.resource.k8s.io"

#: Reasons of pods that wait; an error of the scheduler is no reason once nothing goes wrong.
WAITS = frozenset(("Unschedulable", "NotReadyForScheduling", "SchedulingGated"))


class ConditionPromise:
    """Reads what pods say; of those that were made with a node only their kubelets know."""

    def __init__(self, view: View, lives: PodLives) -> None:
        self._view = view
        self._lives = lives

    def unfinished(self, scheduler: str, still_s: float, at: float) -> Iterator[str]:
        """Pods whose condition is missing or wrong, though they have been there for a while."""
        for pod in self._view.objects("pods"):
            meta = pod["metadata"]
            key = (meta.get("namespace") or "", meta["name"])
            was = self._view.versions("pods", key, at - still_s)[0]
            if (
                pod["spec"].get("schedulerName") != scheduler
                or is_over(pod)
                or is_leaving(pod)
                or was is None
            ):
                continue
            found = condition_of(pod, "PodScheduled")
            status, reason = found.get("status"), found.get("reason")
            life = self._lives.by_uid[meta["uid"]]
            if node_of(pod):
                if life.bound_at > life.born_at and status != "True":
                    yield f"{meta['name']} is on {node_of(pod)}, its PodScheduled is {status}"
            elif node_of(was) != "" or was["metadata"]["uid"] != meta["uid"] or self._lacks_claims(pod):
                continue
            elif status != "False" or reason not in WAITS:
                yield f"{meta['name']} waits, its PodScheduled is {status} ({reason})"
            elif reason != "SchedulingGated" and not found.get("message"):
                yield f"{meta['name']} waits, and does not say what for"

    def _lacks_claims(self, pod: Obj) -> bool:
        """Whether a claim of the pod does not exist: it is not tried then, and says nothing, as upstream."""
        made = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        names = {each["name"]: each.get("resourceClaimName") for each in made}
        there = {
            each["metadata"]["name"]
            for each in self._view.objects(CLAIMS)
            if each["metadata"].get("namespace") == pod["metadata"].get("namespace")
        }
        return any(
            (each.get("resourceClaimName") or names.get(each["name"])) not in there
            for each in pod["spec"].get("resourceClaims") or ()
        )
