"""Queries a pod through the API server's proxy, with a short-lived token for one audience.

The API server consumes the Authorization header of a proxied request, so the caller's own token is not
forwarded. The pod receives, in a different header, a ServiceAccount token that is valid for the audience
only.
"""

from urllib.parse import quote
from urllib.request import getproxies_environment

import orjson
from msgspec import Struct

from plimsoll.kube.session.errors import APIError, Unavailable, error_of, readable
from plimsoll.kube.session.http_transport import tls_of
from plimsoll.kube.session.session import Session
from plimsoll.ports.audience import AUDIENCE, HEADER

#: Lifetime of a token in seconds: the minimum that the API server grants.
TOKEN_S = 600

#: Maximum size of a response in bytes.
MOST = 1 << 20

#: The port of the metrics endpoint if the pod does not name one, and the name of the port.
PORT, PORT_NAME = 8081, "metrics"


class PodAnswer(Struct, frozen=True):
    """A response to a proxied request.

    Attributes:
        refusal: The API server's own refusal; None if the pod responded.
    """

    status: int
    body: bytes
    refusal: APIError | None = None


async def port_of(session: Session, namespace: str, pod: str) -> int:
    """The pod's metrics port.

    Raises:
        APIError: The pod does not exist, or may not be read.
    """
    path = _path(namespace, "pods", pod)
    found = await session.object("GET", path)
    with readable(f"GET {path}"):
        containers = (found.get("spec") or {}).get("containers") or ()
        ports = [port for each in containers for port in each.get("ports") or ()]
        return next((int(each["containerPort"]) for each in ports if each.get("name") == PORT_NAME), PORT)


async def token_of(session: Session, namespace: str, account: str) -> str:
    """A new token of a ServiceAccount for our audience; its TokenRequest is the only write.

    Raises:
        APIError: The account does not exist, or the right is missing.
    """
    path = f"{_path(namespace, 'serviceaccounts', account)}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [AUDIENCE], "expirationSeconds": TOKEN_S},
    }
    answer = await session.object("POST", path, request)
    with readable(f"POST {path}"):
        token = str((answer.get("status") or {}).get("token") or "")
    if not token:
        raise Unavailable(f"POST {path}", message="the answer has no token")
    return token


async def ask_pod(session: Session, target: tuple[str, str, int], path: str, token: str) -> PodAnswer:
    """The pod's response to a GET; redirects are not followed.

    Args:
        session: The session with the API server.
        target: Namespace, name and port of the pod.
        path: Quoted, with a leading slash.
        token: The token from :func:`token_of`.

    Raises:
        APIError: No response arrived.
    """
    import aiohttp  # noqa: PLC0415 - where there is an operator to be asked

    from plimsoll.kube.session.http_client import bounded, opened_client  # noqa: PLC0415 - likewise

    namespace, pod, port = target
    where = f"{_path(namespace, 'pods', pod)}:{port}/proxy{path}"
    headers = {HEADER: f"Bearer {token}"}
    if shown := await session.credentials.authorization():
        headers["Authorization"] = shown
    try:
        async with (
            opened_client(tls_of(session.configuration), bool(getproxies_environment())) as client,
            client.get(
                session.address + where,
                headers=headers,
                allow_redirects=False,
                server_hostname=session.configuration.tls_server_name,
                proxy=session.configuration.proxy,
            ) as answer,
        ):
            body = await bounded(answer, MOST)
            status, is_json = answer.status, answer.content_type == "application/json"
    except (aiohttp.ClientError, OSError) as exc:
        raise Unavailable(f"GET {where}", message=f"{type(exc).__name__}: {exc}") from exc
    if body is None:
        raise Unavailable(f"GET {where}", message=f"the answer has more than {MOST} bytes")
    return PodAnswer(status, body, _refusal(where, status, body) if status >= 400 and is_json else None)


def _refusal(where: str, status: int, body: bytes) -> APIError | None:
    """The API server's refusal if the body is its Status, else None; the operator refuses in plain text."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(parsed, dict) or parsed.get("kind") != "Status":
        return None
    return error_of(f"GET {where}", status, parsed)


def _path(namespace: str, plural: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/{plural}/{quote(name, safe='')}"
