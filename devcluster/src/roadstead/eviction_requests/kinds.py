"""Checks EvictionRequests and Evictions of lifecycle.k8s.io/v1alpha1, and the responders of pods.

Served only with the feature gate EvictionRequestAPI.

Source: k8s.io/api at 10b39a39bcee (after v0.37.0-beta.0) ``{lifecycle/v1alpha1,core/v1}/types.go``;
Kubernetes pull request 137050 ``pkg/registry/lifecycle``, ``pkg/apis/lifecycle/validation``.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from roadstead.eviction_requests.status_checks import (
    condition_causes,
    generation_causes,
    responder_causes,
)
from roadstead.kinds.checks.fields import forbidden, immutable, invalid, one_of, required
from roadstead.kinds.checks.metadata import qualified_name_faults, subdomain_faults
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.kinds.pods import Pods
from roadstead.schemas import fields
from roadstead.schemas.schemas import INTEGER, KEPT_STRING, STRING, TIME, Array, Node, Struct, grafted
from roadstead.values.resources import STATUS, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

GROUP, VERSION = "lifecycle.k8s.io", "v1alpha1"

EVICTION_REQUESTS = Resource(
    GROUP,
    VERSION,
    "EvictionRequest",
    "evictionrequests",
    "evictionrequest",
    namespaced=True,
    subresources=(STATUS,),
)
EVICTIONS = Resource(
    GROUP, VERSION, "Eviction", "evictions", "eviction", namespaced=True, subresources=(STATUS,)
)

INTENTS = ("Eviction", "Withdrawn")
_RESERVED = (".k8s.io", ".kubernetes.io")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOST_RESPONDERS, _MOST_PRIORITY = 10, 100_000


def _named(**more: Node) -> Array:
    return Array(Struct("Named", {"name": STRING, **more}), keys=("name",), merge_key="name")


def _target() -> Struct:
    return Struct("Target", {"pod": Struct("PodReference", {"name": STRING, "uid": STRING})})


def _kind(name: str, spec: dict[str, Node], status: dict[str, Node]) -> Struct:
    conditions = Array(fields.struct("V1Condition"), keys=("type",), merge_key="type")
    return Struct(
        name,
        {
            "apiVersion": STRING,
            "kind": STRING,
            "metadata": fields.struct("V1ObjectMeta"),
            "spec": Struct(f"{name}Spec", {"target": _target(), **spec}),
            "status": Struct(
                f"{name}Status", {"conditions": conditions, "observedGeneration": INTEGER, **status}
            ),
        },
    )


_REQUEST = _kind("EvictionRequest", {"requester": STRING, "intent": STRING}, {})
_EVICTION = _kind(
    "Eviction",
    {},
    {
        "requesters": _named(intent=STRING),
        "targetResponders": _named(priority=INTEGER, state=STRING),
        "responders": _named(
            startTime=TIME,
            heartbeatTime=TIME,
            expectedCompletionTime=TIME,
            completionTime=TIME,
            message=KEPT_STRING,
        ),
    },
)


def prefixed_key_causes(field: str, key: str) -> list[Cause]:
    """Faults of a name such as "acme.io/foo"."""
    if not key:
        return [required(field)]
    if "/" not in key:
        return [invalid(field, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
    return [invalid(field, key, fault) for fault in qualified_name_faults(key)]


def _reserved(field: str, key: str) -> list[Cause]:
    domain = "." + key.partition("/")[0]
    if not domain.endswith(_RESERVED):
        return []
    return [invalid(field, key, "domain names *.k8s.io, *.kubernetes.io are reserved")]


class _OfPods(StatusKind):
    """The common part of both kinds: a target that cannot change."""

    unconditional_update = False
    types: Struct

    def schema(self, resource: Resource) -> Node:
        """The types of the fields."""
        del resource
        return self.types

    def default(self, obj: Obj) -> None:
        """A spec is always present, possibly empty."""
        obj.setdefault("spec", {})

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of the target, which is a pod with name and uid."""
        pod = (obj["spec"].get("target") or {}).get("pod")
        if pod is None:
            return [invalid("spec.target", "", "must specify one of: `pod`")]
        name, uid = pod.get("name", ""), pod.get("uid", "")
        at = "spec.target.pod"
        causes = [invalid(f"{at}.name", name, fault) for fault in subdomain_faults(name)] if name else []
        causes += [] if name else [required(f"{at}.name")]
        if not uid:
            return [*causes, required(f"{at}.uid")]
        if not _UUID.fullmatch(uid):
            message = "must be a lowercase UUID in 8-4-4-4-12 format"
            causes.append(invalid(f"{at}.uid", uid, message))
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The target cannot change."""
        return immutable("spec.target", new["spec"].get("target"), old["spec"].get("target"))


class EvictionRequests(_OfPods):
    """Requests to evict a pod."""

    types = _REQUEST

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of target, requester and intent."""
        requester, intent = obj["spec"].get("requester", ""), obj["spec"].get("intent", "")
        causes = super().validate_create(obj)
        causes += prefixed_key_causes("spec.requester", requester) or _reserved("spec.requester", requester)
        return causes + _intent(intent)

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Only the intent may change."""
        after, before = new["spec"], old["spec"]
        causes = super().validate_update(new, old)
        causes += immutable("spec.requester", after.get("requester"), before.get("requester"))
        return causes + _intent(after.get("intent", ""))

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """The observed generation may only grow."""
        return generation_causes(new, old)


class Evictions(_OfPods):
    """The progress of a pod's eviction.

    Args:
        now: seconds since the epoch.
    """

    types = _EVICTION

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of the responders' progress; a finished Eviction cannot change."""
        causes = generation_causes(new, old) + condition_causes(new, old)
        return causes + responder_causes(new, old, self._now())


class RespondedPods(Pods):
    """Pods that may name responders."""

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new pod."""
        return super().validate_create(obj) + _pod_responder_causes(obj["spec"])


def _intent(intent: str) -> list[Cause]:
    return one_of("spec.intent", intent, INTENTS) if intent else [required("spec.intent")]


def _pod_responder_causes(spec: Obj) -> list[Cause]:
    at, listed = "spec.evictionResponders", spec.get("evictionResponders") or []
    if not listed:
        return []
    if spec.get("schedulingGroup") is not None:
        return [forbidden(at, "may not be set when `schedulingGroup` is set")]
    causes: list[Cause] = []
    if len(listed) > _MOST_RESPONDERS:
        causes.append(invalid(at, len(listed), f"must have at most {_MOST_RESPONDERS} items"))
    for index, one in enumerate(listed):
        name, priority, here = one.get("name", ""), one.get("priority"), f"{at}[{index}]"
        causes += prefixed_key_causes(f"{here}.name", name) or _reserved(f"{here}.name", name)
        if name in [each.get("name") for each in listed[:index]]:
            causes.append(invalid(f"{here}.name", name, "must be unique"))
        if priority is None:
            causes.append(required(f"{here}.priority"))
        elif not 1000 <= priority <= _MOST_PRIORITY:
            message = "must be between 1000 and 100000, inclusive; 0-999 is reserved for *.k8s.io"
            causes.append(invalid(f"{here}.priority", priority, message))
    return causes


@cache
def with_responders(node: Node) -> Node:
    """A schema in which pods and pod templates may name responders."""
    return grafted(node, "V1PodSpec", {"evictionResponders": _named(priority=INTEGER)}, {})


def pod_kinds(kinds: dict[str, Kind]) -> None:
    """Allow responders in pods and in the templates of workloads."""
    kinds["pods"] = RespondedPods()
    for key in ("pods", *(key for key in kinds if key.endswith((".apps", ".batch")))):
        kinds[key].extend_schema = with_responders
