"""Judges the connection: address, TLS, proxy, credentials, and the version of the server."""

import re
from collections.abc import Iterator
from enum import StrEnum
from http import HTTPStatus

from msgspec import Struct

from plimsoll.preflight.findings import Area, Finding, Level

#: The oldest supported minor version (docs/install.md), and the newest tested one.
OLDEST, NEWEST = (1, 33), (1, 36)


#: The subject of all findings here.
SUBJECT = "API server"

#: Replaces a version that may not be read.
UNKNOWN = "unknown"


class Obstacle(StrEnum):
    """The reasons why there is no response."""

    NAME = "name"
    CONNECTION = "connection"
    TLS = "tls"
    PROXY = "proxy"
    TIME = "time"


_REMEDIES = {
    Obstacle.NAME: "check the server's name in the kubeconfig, and DNS",
    Obstacle.CONNECTION: "check address and port in the kubeconfig, and that the server runs",
    Obstacle.TLS: "check certificate-authority, tls-server-name and https:// in the kubeconfig",
    Obstacle.PROXY: "check proxy-url in the kubeconfig, and HTTPS_PROXY and NO_PROXY",
    Obstacle.TIME: "check the network and firewalls between here and the server",
}


class Contact(Struct, frozen=True):
    """The result of the first requests.

    Attributes:
        proxy: The proxy that they used, "" for none.
        obstacle: Why there was no response.
        status: HTTP status of a refusal; 0 without one.
        message: The message of the server or the library about it.
        version: The server's version, such as ``v1.36.0``.
        user: Our user name in the server; "" if it does not say.
    """

    address: str
    proxy: str = ""
    obstacle: Obstacle | None = None
    status: int = 0
    message: str = ""
    version: str = ""
    user: str = ""

    @property
    def is_usable(self) -> bool:
        """Whether further requests make sense."""
        return bool(self.version) and self.status != HTTPStatus.UNAUTHORIZED


def judged_contact(contact: Contact) -> Iterator[Finding]:
    """Findings about the connection."""
    address = contact.address
    through = f" through the proxy {contact.proxy}" if contact.proxy else ""
    if contact.obstacle is not None:
        message = f"no answer from {address}{through}: {contact.message}"
        yield Finding(Area.SERVER, Level.ERROR, SUBJECT, message, _REMEDIES[contact.obstacle])
        return
    if contact.status == HTTPStatus.UNAUTHORIZED:
        message = f"{address} does not accept the credentials: {contact.message or 'Unauthorized'}"
        remedy = "log in again, or renew the token or certificate of the kubeconfig"
        yield Finding(Area.SERVER, Level.ERROR, SUBJECT, message, remedy)
        return
    if not contact.is_usable:
        message = f"{address} answers, and not as a Kubernetes API server does: {contact.message}"
        yield Finding(
            Area.SERVER, Level.ERROR, SUBJECT, message, "check the server's address in the kubeconfig"
        )
        return
    yield Finding(Area.SERVER, Level.OK, SUBJECT, f"{address} answers{through}")
    yield _identity(contact)
    yield judged_version(contact.version)


def _identity(contact: Contact) -> Finding:
    if contact.user == "system:anonymous":
        message = "the kubeconfig has no credentials: the API server takes the caller for system:anonymous"
        return Finding(
            Area.SERVER,
            Level.ERROR,
            SUBJECT,
            message,
            "give the user of the kubeconfig a token or certificate",
        )
    if contact.user:
        return Finding(Area.SERVER, Level.OK, SUBJECT, f"it knows the credentials as {contact.user}")
    if contact.status == 403:
        message = "it knows the credentials, and does not say whose they are: you may not create"
        remedy = "bind the role system:basic-user to system:authenticated, as every cluster does by default"
        return Finding(
            Area.SERVER, Level.WARNING, SUBJECT, f"{message} selfsubjectreviews.authentication.k8s.io", remedy
        )
    return Finding(
        Area.SERVER, Level.OK, SUBJECT, "it takes the credentials, and does not say whose they are"
    )


def judged_version(version: str) -> Finding:
    """The finding about the server's version, which may be :data:`UNKNOWN`."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    if version == UNKNOWN:
        supported = f"Kubernetes {_text(OLDEST)} and newer are supported"
        message = f"not checked: you may not read its version; {supported}"
        return Finding(Area.SERVER, Level.WARNING, SUBJECT, message, "look at kubectl version")
    if found is None:
        message = f'its version "{version}" cannot be read; {_text(OLDEST)} and newer are supported'
        return Finding(Area.SERVER, Level.WARNING, SUBJECT, message, "look at kubectl version")
    minor = (int(found[1]), int(found[2]))
    if minor < OLDEST:
        message = f"Kubernetes {version} is older than {_text(OLDEST)}, the oldest version that is supported"
        return Finding(Area.SERVER, Level.WARNING, SUBJECT, message, "upgrade the cluster")
    newer = f", newer than {_text(NEWEST)}, the newest that was tried" if minor > NEWEST else ""
    return Finding(Area.SERVER, Level.OK, SUBJECT, f"Kubernetes {version} is supported{newer}")


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
