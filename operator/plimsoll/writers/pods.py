"""Binds, evicts, deletes and reads pods, and writes their status."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from plimsoll.kube.session.errors import (
    LONGEST_MESSAGE,
    APIError,
    TooManyRequests,
    answer_of,
)
from plimsoll.kube.session.session import REQUEST_TIMEOUT_S, STRATEGIC_PATCH, Session
from plimsoll.model.decoding import DecodeError, decode, read_with
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.ports.clock import Clock
from plimsoll.ports.pod_writes import ConditionUpdate
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.toolkit.descheduling.disruption_signals import EVICTION_IN_PROGRESS, REQUEST_EVICT_ONLY

#: Timeout in seconds of reading one pod that other work waits for.
READ_TIMEOUT_S = 5.0


class _PlacedSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Found(msgspec.Struct):
    metadata: ObjectMeta
    spec: _PlacedSpec = msgspec.field(default_factory=_PlacedSpec)


class _FoundPods(msgspec.Struct):
    items: tuple[_Found, ...] = ()


async def _read_back(
    session: Session, pod: Pod, timeout_s: float = REQUEST_TIMEOUT_S
) -> tuple[WriteResult, _Found | None]:
    """Read this very pod by a list of one, which needs no rights beyond those of the watch.

    Without a resourceVersion the server reads from etcd, not from its watch cache.
    """
    path = f"/api/v1/namespaces/{pod.namespace}/pods"
    try:
        content = await session.request(
            "GET", path, params={"fieldSelector": f"metadata.name={pod.name}"}, timeout_s=timeout_s
        )
        found = {each.metadata.uid: each for each in decode(_FoundPods, content).items}
    except APIError as exc:
        return answer_of(exc), None
    except DecodeError as exc:
        return WriteResult(WriteOutcome.UNKNOWN, f"GET {path}: the answer cannot be read: {exc}"), None
    if pod.uid in found:
        return WriteResult(WriteOutcome.DONE), found[pod.uid]
    return WriteResult(WriteOutcome.GONE, f'pods "{pod.name}" not found'), None


class PodBinder:
    """Binds pods."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def bind(self, pod: Pod, node: str) -> WriteResult:
        """Bind this very pod: the uid prevents binding a later pod of the same name."""
        return await self._session.write("POST", _binding_path(pod), _binding(pod, node))

    async def bind_together(self, bindings: Sequence[tuple[Pod, str]]) -> Sequence[WriteResult | None]:
        """Bind several pods, where possible with pipelined requests over one connection."""
        if not self._session.sends_together:
            return [None] * len(bindings)
        return await self._session.write_all(
            "POST", [(_binding_path(pod), orjson.dumps(_binding(pod, node))) for pod, node in bindings]
        )

    async def node_of(self, pod: Pod) -> tuple[WriteResult, str]:
        """The node to which the pod is bound, read from the server."""
        answer, found = await _read_back(self._session, pod)
        return answer, "" if found is None else found.spec.node_name


def _binding_path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding"


def _binding(pod: Pod, node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


#: The cause that the API server gives when a PodDisruptionBudget rejects an eviction.
BUDGET_CAUSE = "DisruptionBudget"


_NAMED = re.compile(r"disruption budget (\S{1,253})")


#: Seconds until the next try after a 429 for which the server asks no time, as its own flow control does: a
#: component that has taken the pod over says so on the pod meanwhile.
SIGN_WITHIN_S = 5.0

#: Reported when a pod is not evicted because it could not be read.
UNREAD = "the pod could not be read before its eviction"


class PodEvictor:
    """Evicts pods, only through the Eviction API."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def evict(self, pod: Pod) -> WriteResult:
        """Evict this very pod if unchanged since it was judged; the uid spares a later pod of its name.

        Returns GONE when the pod has left or is terminating, CONFLICT when it has changed, and DEFERRED when
        another component carries out this eviction or an earlier one in its own time. Returns BUSY,
        after which the call may be repeated, when the pod could not be read, or the server was busy or got a
        conflict although the pod still exists.
        """
        standing = await self.standing(pod)
        return await self._evict(pod) if standing.is_done else standing

    async def standing(self, pod: Pod) -> WriteResult:
        """Read this very pod, and compare the fields that protect it and may change.

        A precondition would not suffice: the API server compares the resourceVersion, which every status
        update changes, and only after it has charged the eviction to the pod's budget.
        Source: kube-apiserver v1.36, ``pkg/registry/core/pod/storage/eviction.go``.
        """
        read, found = await _read_back(self._session, pod, READ_TIMEOUT_S)
        if read.verdict is WriteOutcome.UNKNOWN:
            return replace(read, verdict=WriteOutcome.BUSY, message=f"{UNREAD}: {read.message}")
        if found is None:
            return read
        now = found.metadata
        if now.deletion_timestamp is not None:
            return WriteResult(WriteOutcome.GONE, f'pod "{pod.name}" is about to leave')
        if EVICTION_IN_PROGRESS in now.annotations:
            owner = now.annotations[EVICTION_IN_PROGRESS] or "another component"
            said = (
                f"annotation {EVICTION_IN_PROGRESS}: {owner[:64]} carries out an earlier eviction of the pod"
            )
            return WriteResult(WriteOutcome.DEFERRED, said)
        changed = _changes(pod.metadata, now)
        if changed:
            return WriteResult(WriteOutcome.CONFLICT, f"the pod has other {changed} than the watch has shown")
        return WriteResult(WriteOutcome.DONE)

    async def _evict(self, pod: Pod) -> WriteResult:
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
            causes = exc.details.get("causes")
            said = next(
                (
                    cause
                    for cause in (causes if isinstance(causes, list) else ())
                    if isinstance(cause, dict) and cause.get("reason") == BUDGET_CAUSE
                ),
                None,
            )
            if said is None and is_carried_out(pod, exc.message):
                return replace(answer_of(exc), verdict=WriteOutcome.DEFERRED)
            if said is None:
                answer = answer_of(exc)
                return replace(answer, retry_after_s=answer.retry_after_s or SIGN_WITHIN_S)
            named = _NAMED.search(str(said.get("message", "")))
            return replace(
                answer_of(exc),
                verdict=WriteOutcome.BLOCKED,
                budget=f"{pod.namespace}/{named[1]}" if named else "",
                message=str(said.get("message") or exc.message)[:LONGEST_MESSAGE],
            )
        except APIError as exc:
            answer = answer_of(exc)
            return await self._conflicted(pod, answer) if exc.status == 409 else answer
        return WriteResult(WriteOutcome.DONE)

    async def _conflicted(self, pod: Pod, answer: WriteResult) -> WriteResult:
        """Interpret a 409: another pod has the name, or the pod or its budget was being written.

        Source: kube-apiserver v1.36, ``pkg/registry/core/pod/storage/eviction.go``, which retries its own
        writes a few times and then returns the last conflict.
        """
        read, found = await _read_back(self._session, pod)
        is_leaving = found is not None and found.metadata.deletion_timestamp is not None
        has_left = read.verdict is WriteOutcome.GONE or is_leaving
        return replace(answer, verdict=WriteOutcome.GONE if has_left else WriteOutcome.BUSY)


def is_carried_out(pod: Pod, message: str) -> bool:
    """Whether a 429 without a budget's cause means that another component carries the eviction out.

    The server itself is busy in other words: a webhook is named by its denial. Source: kube-apiserver v1.36,
    ``admission/plugin/webhook/errors``; KubeVirt 1.6, ``pod-eviction-admitter.go``.
    """
    is_denied = "denied the request" in message or "triggered evacuation" in message
    return is_denied or REQUEST_EVICT_ONLY in pod.metadata.annotations


def _changes(judged: ObjectMeta, now: ObjectMeta) -> str:
    """The difference in the fields that protect a pod and may change; "" for none."""
    fields = {
        "labels": (judged.labels, now.labels),
        "annotations": (judged.annotations, now.annotations),
        "owners": (judged.owner_references, now.owner_references),
    }
    return " and ".join(name for name, (before, after) in fields.items() if before != after)


#: The remedy where the operator may not delete pods.
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
        """Set the DisruptionTarget condition of the victim, then delete this very pod."""
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
        marked = await _patch_status(self._session, victim, {"conditions": [condition]})
        if not marked.is_done:
            return marked  # no pod is deleted without the condition that gives the reason
        try:
            await self._session.request("DELETE", path, {"preconditions": {"uid": victim.uid}})
        except APIError as exc:
            answer = answer_of(exc)
            return replace(answer, message=f"{answer.message}; {REMEDY}") if exc.status == 403 else answer
        return WriteResult(WriteOutcome.DONE)

    async def clear_nomination(self, pod: Pod) -> WriteResult:
        """Remove the nomination of a pod of lower priority."""
        return await _patch_status(self._session, pod, {"nominatedNodeName": None})


class _Meta(msgspec.Struct):
    uid: str = ""


class _Identified(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_IDENTIFIED = msgspec.json.Decoder(_Identified)


class PodDocuments:
    """Reads the documents of pods."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def read(self, pod: Pod) -> tuple[WriteResult, bytes]:
        """The document of this very pod; GONE when another pod has its name."""
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        try:
            content = await self._session.request("GET", path, timeout_s=READ_TIMEOUT_S)
            uid = read_with(_IDENTIFIED, content).metadata.uid
        except APIError as exc:
            return answer_of(exc), b""
        except msgspec.MsgspecError as exc:
            return WriteResult(WriteOutcome.UNKNOWN, f"GET {path}: the answer cannot be read: {exc}"), b""
        if uid != pod.uid:
            return WriteResult(WriteOutcome.GONE, f"pod {pod.key} with uid {pod.uid} is gone"), b""
        return WriteResult(WriteOutcome.DONE), content


def timestamp(seconds: float) -> str:
    """The time in RFC 3339 in whole seconds, as the API writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class PodStatusPatcher:
    """Writes ``PodScheduled=False`` and the nominated node."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock

    async def write_condition(self, pod: Pod, condition: ConditionUpdate) -> WriteResult:
        """Set the condition; its transition time changes only if its status does."""
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
        return await _patch_status(self._session, pod, status)

    async def nominate(self, pod: Pod, node: str) -> WriteResult:
        """Set the nominated node."""
        return await _patch_status(self._session, pod, {"nominatedNodeName": node})


async def _patch_status(session: Session, pod: Pod, status: Mapping[str, Any]) -> WriteResult:
    """Merge into the status of this very pod (by uid)."""
    body = {"metadata": {"uid": pod.uid}, "status": status}
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
    return await session.write("PATCH", path, body, content_type=STRATEGIC_PATCH)
