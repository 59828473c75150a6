"""Sends the first requests of a check, and classifies why no response came."""

import ssl
from http import HTTPStatus
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp

from plimsoll.check.server import UNKNOWN, Contact, Obstacle
from plimsoll.kube.session.errors import APIError, NotFound, Unavailable
from plimsoll.kube.session.session import Session

#: Timeout of a response in seconds.
TIMEOUT_S = 10.0

VERSION = "/version"
_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def contact(session: Session) -> Contact:
    """Request the server's version, and our identity."""
    address, proxy = session.address, proxy_of(session)
    try:
        version = await session.object("GET", VERSION, timeout_s=TIMEOUT_S)
    except Unavailable as exc:
        if exc.status:
            return Contact(address, proxy, status=exc.status, message=f"{exc.status} {exc.message}")
        return Contact(address, proxy, obstacle=obstacle_of(exc, proxy), message=exc.message)
    except APIError as exc:
        if exc.status != HTTPStatus.FORBIDDEN:
            return Contact(address, proxy, status=exc.status, message=exc.message or exc.reason)
        version = {"gitVersion": UNKNOWN}
    found = str(version.get("gitVersion") or "")
    if not found:
        shown = str(version.get("message") or "")[:100]
        return Contact(address, proxy, message=" ".join(shown.split()) or "/version has no gitVersion")
    status, message, user = await _identity(session)
    return Contact(address, proxy, status=status, message=message, version=found, user=user)


async def _identity(session: Session) -> tuple[int, str, str]:
    """Status and message of a refusal, and our user name."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await session.object("POST", _REVIEW, body, timeout_s=TIMEOUT_S)
    except NotFound:
        return 0, "", ""
    except APIError as exc:
        return exc.status, exc.message, ""
    found = ((answer.get("status") or {}).get("userInfo") or {}).get("username")
    return 0, "", str(found or "")


def proxy_of(session: Session) -> str:
    """The proxy of our requests, without credentials; "" for none."""
    url = urlsplit(session.address)
    proxies = getproxies_environment()
    proxy = str(session.configuration.proxy or "")
    if not proxy and not proxy_bypass(url.hostname or ""):
        proxy = proxies.get(url.scheme, "")
    scheme, mark, rest = proxy.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def obstacle_of(exc: APIError, proxy: str) -> Obstacle:
    """The reason why no response came."""
    cause = exc.__cause__
    match cause:
        case aiohttp.ClientConnectorDNSError():
            return Obstacle.NAME
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return Obstacle.PROXY
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return Obstacle.TLS
        case TimeoutError():
            return Obstacle.TIME
    return Obstacle.PROXY if proxy else Obstacle.CONNECTION
