"""The subresource ``proxy`` of pods: GET requests are passed on to a pod's address over plain HTTP.

Only loopback addresses are connected to: simulated pods have addresses, and nothing listens there. As in a
real cluster, the Authorization header ends at the API server.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from roadstead.values.status_errors import StatusError, bad_request

if TYPE_CHECKING:
    from roadstead.store.api import Api

_PATH = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)/proxy(/.*)?")

#: Headers that a proxy does not pass on: those of the connection, and the caller's identity.
_ENDS_HERE = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

#: Seconds to wait for a response.
_TIMEOUT_S = 30


async def proxied(api: Api, request: web.BaseRequest) -> web.Response | None:
    """The pod's response; None if the path is not a pod's proxy.

    Raises:
        StatusError: 404 without the pod, 400 for another scheme or no address, 405 for a method other than
            GET and HEAD, 503 without an answer.
    """
    found = _PATH.fullmatch(request.url.raw_path)
    if found is None:
        return None
    if request.method not in ("GET", "HEAD"):
        message = "the server does not allow this method on the requested resource"
        raise StatusError(405, "MethodNotAllowed", message)
    namespace, named, path = unquote(found[1]), unquote(found[2]), found[3] or "/"
    scheme, name, port = _split(named)
    if scheme not in ("", "http") or not name:
        raise bad_request(f'invalid pod request "{named}"')
    resource = api.registry.at("", "v1", "pods")
    assert resource is not None
    pod = api.entry(resource, namespace, name).obj
    address = (pod.get("status") or {}).get("podIP", "")
    if not address:
        raise bad_request("address not allowed")
    port = port or _first_port(pod)
    host = f"[{address}]" if ":" in address else address
    if not ipaddress.ip_address(address).is_loopback:
        raise _unreachable(f"dial tcp {host}:{port}: connect: connection refused")
    query = f"?{request.url.raw_query_string}" if request.url.raw_query_string else ""
    url = URL(f"http://{host}:{port}{path}{query}", encoded=True)
    headers = {key: value for key, value in request.headers.items() if key.lower() not in _ENDS_HERE}
    try:
        async with (
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=_TIMEOUT_S), auto_decompress=False
            ) as http,
            http.request(request.method, url, headers=headers, allow_redirects=False) as answer,
        ):
            body = await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError) as exc:
        raise _unreachable(str(exc) or type(exc).__name__) from exc
    kept = {key: value for key, value in answer.headers.items() if key.lower() not in _ENDS_HERE}
    return web.Response(status=answer.status, body=body, headers=kept)


def _split(named: str) -> tuple[str, str, str]:
    """Scheme, name and port of ``name``, ``name:port`` or ``scheme:name:port``."""
    parts = named.split(":")
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    return ("", parts[0], parts[1]) if len(parts) == 2 else ("", named if len(parts) == 1 else "", "")


def _first_port(pod: dict[str, object]) -> str:
    spec = pod["spec"]
    assert isinstance(spec, dict)
    ports = [port for each in spec["containers"] for port in each.get("ports") or ()]
    return str(ports[0]["containerPort"]) if ports else "80"


def _unreachable(why: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", f"error trying to reach service: {why}")
