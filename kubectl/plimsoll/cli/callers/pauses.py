"""Pauses moves from the command line by the stop button or ``spec.suspend``, and starts runs of policies.

The stop button is an annotation of the namespace in which the operator's lease is. An annotation of another
namespace would have no effect, so the lease is looked up first. Further annotations name the user and the
reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from plimsoll.api.v1alpha1.annotations import PAUSE_REASON, PAUSED_BY, RUN, STOP
from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.custom_resources import GROUP
from plimsoll.kube.leases import GROUP as LEASE_GROUP
from plimsoll.kube.session.errors import APIError, NotFound, readable
from plimsoll.kube.session.session import MERGE_PATCH, Session

REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class PauseError(PlimsollError):
    """The operator or policy was not found, or cannot run; nothing was written."""


class OperatorLease(Struct, frozen=True):
    """The location of the operator's lease.

    Attributes:
        namespace: The lease's namespace; "" to look it up.
        lease: The lease's name.
    """

    namespace: str = ""
    lease: str = "plimsoll"


async def press(
    session: Session, operator: OperatorLease, *, paused: bool, reason: str = ""
) -> Sequence[str]:
    """Press or release the stop button; returns the lines to print.

    Raises:
        PauseError: No operator was found, or several were.
        APIError: The server refused a request, or did not respond.
    """
    namespace = await operator_namespace(session, operator)
    path = f"/api/v1/namespaces/{namespace}"
    found = await session.object("GET", path)
    with readable(f"GET {path}"):
        was = (found["metadata"].get("annotations") or {}).get(STOP) == "true"
    if (was and not paused) or (paused and (not was or reason)):
        change = {STOP: "true" if paused else None, **(await _signature(session, reason, paused=paused))}
        await session.request("PATCH", path, {"metadata": {"annotations": change}}, content_type=MERGE_PATCH)
    if paused:
        return [f"namespace/{namespace} paused: no policy moves a pod until plimsoll resume"]
    return [f"namespace/{namespace} {'resumed' if was else 'was not paused'}"]


async def suspend(
    session: Session, policies: Sequence[str], *, paused: bool, reason: str = ""
) -> Sequence[str]:
    """Suspend or resume policies; returns a line for each. All names are checked first.

    Raises:
        PauseError: A policy does not exist.
        APIError: The server refused a request, or did not respond.
    """
    found = {name: await _policy(session, name) for name in policies}
    signature = await _signature(session, reason, paused=paused)
    lines = []
    for name, policy in found.items():
        with readable(f"GET {_path(name)}"):
            was = bool((policy.get("spec") or {}).get("suspend"))
        if was != paused or (paused and reason):
            change = {"metadata": {"annotations": signature}, "spec": {"suspend": paused}}
            await session.request("PATCH", _path(name), change, content_type=MERGE_PATCH)
        done = "paused" if paused else "resumed" if was else "was not paused"
        lines.append(f"schedulingpolicy.plimsoll.dev/{name} {done}")
    return lines


async def start(session: Session, policies: Sequence[str], moment: str) -> Sequence[str]:
    """Start a run of policies by their annotation; returns a line for each. All are checked first.

    Raises:
        PauseError: A policy does not exist, is suspended, or moves no pods.
        APIError: The server refused a request, or did not respond.
    """
    for name in policies:
        policy = await _policy(session, name)
        with readable(f"GET {_path(name)}"):
            spec = policy.get("spec") or {}
        if spec.get("suspend"):
            raise PauseError(f"policy {name} is suspended and runs only after plimsoll resume {name}")
        if spec.get("rebalancing") is None:
            raise PauseError(f"policy {name} has no runs: it has no spec.rebalancing")
    lines = []
    for name in policies:
        change = {"metadata": {"annotations": {RUN: moment}}}
        await session.request("PATCH", _path(name), change, content_type=MERGE_PATCH)
        lines.append(f"schedulingpolicy.plimsoll.dev/{name} runs now")
    return lines


async def operator_namespace(session: Session, operator: OperatorLease) -> str:
    """The namespace of the operator's lease.

    Raises:
        PauseError: No operator was found, or several were.
        APIError: The server refused a request, or did not respond.
    """
    if operator.namespace:
        where = f"{LEASE_GROUP}/namespaces/{operator.namespace}/leases/{operator.lease}"
        try:
            await session.object("GET", where)
        except NotFound as exc:
            raise PauseError(
                f"no operator in namespace {operator.namespace}: it has no lease {operator.lease};"
                " name the namespace of the operator's lease with --namespace, or the lease with --lease"
            ) from exc
        return operator.namespace
    listed = await session.object(
        "GET", f"{LEASE_GROUP}/leases", params={"fieldSelector": f"metadata.name={operator.lease}"}
    )
    with readable(f"GET {LEASE_GROUP}/leases"):
        leases: Sequence[Mapping[str, Any]] = listed.get("items") or ()
        found = sorted(
            str(each["metadata"]["namespace"])
            for each in leases
            if each["metadata"]["name"] == operator.lease
        )
    if len(found) == 1:
        return str(found[0])
    if found:
        raise PauseError(
            f"several namespaces have a lease {operator.lease}: {', '.join(found)}; choose with --namespace"
        )
    raise PauseError(
        f"no operator was found: no namespace has a lease {operator.lease}; name the lease with --lease"
    )


async def _policy(session: Session, name: str) -> Mapping[str, Any]:
    try:
        return await session.object("GET", _path(name))
    except NotFound as exc:
        if not exc.details.get("name"):
            raise  # the API is not served
        raise PauseError(f"no SchedulingPolicy {name}; kubectl get spol lists them") from exc


def _path(policy: str) -> str:
    return f"{GROUP}/schedulingpolicies/{quote(policy, safe='')}"


async def _signature(session: Session, reason: str, *, paused: bool) -> Mapping[str, str | None]:
    """The annotations that name the user and the reason of a pause; resuming removes them."""
    if not paused:
        return {PAUSED_BY: None, PAUSE_REASON: None}
    return {PAUSED_BY: await _username(session) or None, PAUSE_REASON: reason or None}


async def _username(session: Session) -> str:
    """Our user name according to the server; "" if it returns none."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await session.object("POST", REVIEWS, review)
    except APIError:
        return ""
    try:
        return str(answer["status"]["userInfo"]["username"] or "")
    except (LookupError, TypeError):
        return ""
