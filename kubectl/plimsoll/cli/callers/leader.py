"""Requests the leader's memory through the API server's proxy, within three seconds.

If there is no answer, the error gives the reason. The user's own token is sent to the API server only.
Nothing but a token request is written.
"""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from plimsoll.cli.callers.pod_proxy import PodAnswer, ask_pod, port_of, token_of
from plimsoll.commands.options import Options
from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.leases import GROUP as LEASE_GROUP
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized
from plimsoll.kube.session.session import Session, connected
from plimsoll.ports.audience import READER
from plimsoll.preflight.leases import lease_of, pod_of

#: Seconds for all requests together.
ANSWER_S = 3.0

#: Where deploy/ installs the operator.
NAMESPACE = "plimsoll"

#: What to do in every case.
ELSE = "or name its address with --operator URL, of a port-forward"

#: What grants callers their rights.
GRANTS = "deploy/components/explain has the Role plimsoll-asking, which grants it"


class NotAsked(PlimsollError):
    """The leader did not answer; the message has the reason and the remedy."""


def leader_memory(options: Options, lease: str, names: tuple[str, ...]) -> bytes:
    """Request the leader's answer.

    Args:
        options: Name the cluster.
        lease: NAME or NAMESPACE/NAME.
        names: ``pods``, namespace and name; or ``nodes`` and name.

    Raises:
        NotAsked: It did not answer.
    """

    async def run() -> bytes:
        async with asyncio.timeout(ANSWER_S), connected(options.kubeconfig, options.context) as session:
            return await _asked(session, lease, names)

    try:
        return asyncio.run(run())
    except TimeoutError as exc:
        raise NotAsked(
            f"no answer in {ANSWER_S:g} s; admit the API server to its metrics port (NetworkPolicy), {ELSE}"
        ) from exc
    except APIError as exc:
        raise NotAsked(_said(exc)) from exc


async def _asked(session: Session, lease: str, names: tuple[str, ...]) -> bytes:
    path = f"/explain/{'/'.join(quote(each, safe='') for each in names)}"
    namespace, pod = await _holder(session, lease)
    try:
        port = await port_of(session, namespace, pod)
    except NotFound as exc:
        raise NotAsked(
            f"it runs outside of the cluster or has ended ({pod} holds the lease and is no pod of namespace"
            f" {namespace}); if it runs, name its address: --operator http://HOST:8081"
        ) from exc
    try:
        token = await token_of(session, namespace, READER)
    except NotFound as exc:
        raise NotAsked(
            f"namespace {namespace} has no ServiceAccount {READER}; apply deploy/components/explain, {ELSE}"
        ) from exc
    answer = await ask_pod(session, (namespace, pod, port), path, token)
    if answer.refusal is not None:
        raise answer.refusal
    return _body(answer, f"{namespace}/{pod}")


def _body(answer: PodAnswer, pod: str) -> bytes:
    """The body of the operator's response; raises without a valid one."""
    if answer.status == 200:
        return answer.body
    text = " ".join(answer.body[:200].decode(errors="replace").split())
    raise NotAsked(f"pod {pod} answered {answer.status}: {text}; {ELSE[3:]}")


async def _holder(session: Session, lease: str) -> tuple[str, str]:
    """Namespace and pod name of the lease's holder."""
    namespace, _, name = lease.rpartition("/")
    found = await _leases(session, namespace, name)
    held = {str(each["metadata"]["namespace"]): lease_of(each).holder for each in found}
    if not held:
        where = f"namespace {namespace}" if namespace else "no namespace"
        raise NotAsked(
            f"{where} has {'no' if namespace else 'a'} lease {name};"
            f" name it with --lease NAMESPACE/NAME, {ELSE}"
        )
    held = {where: holder for where, holder in held.items() if holder}
    if not held:
        raise NotAsked(f"the lease {name} has no holder: no operator leads; plimsoll check says more")
    if len(held) > 1:
        raise NotAsked(
            f"several namespaces have a lease {name}: {', '.join(sorted(held))};"
            f" choose with --lease NAMESPACE/NAME, {ELSE}"
        )
    ((where, holder),) = held.items()
    return where, pod_of(holder)


async def _leases(session: Session, namespace: str, name: str) -> list[Mapping[str, Any]]:
    """The leases of that name; only in deploy/'s namespace for users who may not list all."""
    if not namespace:
        try:
            listed = await session.object(
                "GET", f"{LEASE_GROUP}/leases", params={"fieldSelector": f"metadata.name={name}"}
            )
        except Unauthorized as exc:
            if exc.status != 403:
                raise
            namespace = NAMESPACE
        else:
            return [each for each in listed.get("items") or () if each["metadata"]["name"] == name]
    path = f"{LEASE_GROUP}/namespaces/{quote(namespace, safe='')}/leases/{quote(name, safe='')}"
    try:
        return [await session.object("GET", path)]
    except NotFound:
        return []


def _said(exc: APIError) -> str:
    why = exc.message or exc.reason or str(exc)
    if isinstance(exc, Unauthorized) and exc.status == 403:
        return f"{why}; {GRANTS}, {ELSE}"
    return f"{why}; {ELSE[3:]}"
