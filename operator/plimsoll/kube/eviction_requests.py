"""EvictionRequests (lifecycle.k8s.io/v1alpha1): ask for a pod to leave, and see who makes it leave.

Each requester has a request of its own; the server's controller makes one Eviction of all that are about the
same pod and labels it with who takes part.

Source: k8s.io/api after v0.37.0-beta.0 ``lifecycle/v1alpha1/types.go``; KEP-4563.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from plimsoll.kube.session.errors import APIError, Conflict, answer_of, answered
from plimsoll.kube.session.session import MERGE_PATCH, Session
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.writes import WriteOutcome, WriteResult

GROUP = "/apis/lifecycle.k8s.io/v1alpha1"

#: Who we are in the protocol; a label's key, too.
REQUESTER = "plimsoll.dev/rebalancing"

#: What our requests are labelled with.
OURS = ("app.kubernetes.io/managed-by", "plimsoll")

_NEEDED = ("evictionrequests", "evictions")
_EVICTION, _WITHDRAWN = "Eviction", "Withdrawn"


class PodEvictionRequester:
    """Creates, withdraws, lists and deletes our EvictionRequests."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def offered(self) -> WriteResult:
        """Ask discovery."""
        try:
            found = await self._session.object("GET", GROUP)
        except APIError as exc:
            return answer_of(exc)
        served = {each.get("name") for each in found.get("resources") or ()}
        missing = [name for name in _NEEDED if name not in served]
        if missing:
            return WriteResult(WriteOutcome.GONE, f"{GROUP} does not serve {' and '.join(missing)}")
        return WriteResult(WriteOutcome.DONE)

    async def request(self, pod: Pod, name: str) -> WriteResult:
        """Create the request; one that is there already is ours if it says the same."""
        body = {
            "apiVersion": "lifecycle.k8s.io/v1alpha1",
            "kind": "EvictionRequest",
            "metadata": {"name": name, "namespace": pod.namespace, "labels": dict([OURS])},
            "spec": {
                "target": {"pod": {"name": pod.name, "uid": pod.uid}},
                "requester": REQUESTER,
                "intent": _EVICTION,
            },
        }
        path = f"{GROUP}/namespaces/{pod.namespace}/evictionrequests"
        try:
            await self._session.request("POST", path, body)
        except Conflict as exc:
            answer, ours = await self.list()
            made = EvictionRequest(pod.namespace, name, pod.uid)
            if any((each.key, each.pod_uid) == (made.key, made.pod_uid) for each in ours):
                return WriteResult(WriteOutcome.DONE)
            return answer_of(exc) if answer.is_done else answer
        except APIError as exc:
            return answer_of(exc)
        return WriteResult(WriteOutcome.DONE)

    async def withdraw(self, request: EvictionRequest) -> WriteResult:
        """Set the intent to Withdrawn."""
        body = {"spec": {"intent": _WITHDRAWN}}
        return await answered(self._session.request("PATCH", _path(request), body, content_type=MERGE_PATCH))

    async def drop(self, request: EvictionRequest) -> WriteResult:
        """Delete the request."""
        return await answered(self._session.request("DELETE", _path(request)))

    async def list(self) -> tuple[WriteResult, Sequence[EvictionRequest]]:
        """Our requests, each with the Eviction that it is part of."""
        ours = quote("=".join(OURS), safe="")
        taken_part = quote(REQUESTER, safe="")
        try:
            requests = await self._session.object("GET", f"{GROUP}/evictionrequests?labelSelector={ours}")
            # A label is anybody's to set; who asks is what the request says.
            items = [
                each
                for each in requests.get("items") or ()
                if (each.get("spec") or {}).get("requester") == REQUESTER
            ]
            evictions = (
                await self._session.object("GET", f"{GROUP}/evictions?labelSelector={taken_part}")
                if items
                else {}
            )
        except APIError as exc:
            return answer_of(exc), ()
        by_uid = _under_way(evictions.get("items") or ())
        return WriteResult(WriteOutcome.DONE), [_told(each, by_uid) for each in items]


def _path(request: EvictionRequest) -> str:
    return f"{GROUP}/namespaces/{request.namespace}/evictionrequests/{request.name}"


def _uid(document: Mapping[str, Any]) -> str:
    target = document["spec"].get("target") or {}
    return str((target.get("pod") or {}).get("uid", ""))


def _conditions(document: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Those that hold, by type."""
    listed = (document.get("status") or {}).get("conditions") or ()
    return {each.get("type", ""): each for each in listed if each.get("status") == "True"}


def _under_way(evictions: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The Eviction that has not come to its end, by the pod's uid."""
    return {_uid(each): each for each in evictions if not _conditions(each)}


def _told(document: Mapping[str, Any], evictions: Mapping[str, Mapping[str, Any]]) -> EvictionRequest:
    meta, spec, held = document["metadata"], document["spec"], _conditions(document)
    uid = _uid(document)
    status = (evictions.get(uid) or {}).get("status") or {}
    turns = status.get("targetResponders") or ()
    active = next((each.get("name", "") for each in turns if each.get("state") == "Active"), "")
    reports: dict[str, Any] = {each.get("name", ""): each for each in status.get("responders") or ()}
    report = reports.get(active, {})
    expected = report.get("expectedCompletionTime")
    failed = held.get("Failed")
    return EvictionRequest(
        namespace=meta["namespace"],
        name=meta["name"],
        pod_uid=uid,
        is_withdrawn=spec.get("intent") != _EVICTION,
        is_observed=(document.get("status") or {}).get("observedGeneration") is not None,
        is_evicted="TargetEvicted" in held,
        failure=str(failed.get("reason") or "Failed") if failed else "",
        message=str(failed.get("message") or "") if failed else "",
        responder=active,
        said=str(report.get("message") or ""),
        expected=datetime.fromisoformat(expected).timestamp() if expected else None,
    )
