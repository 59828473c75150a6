"""Finds where a ``clientConfig`` of a webhook leads."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj

#: On a Service: the port on loopback where the webhook listens.
LOOPBACK_PORT = "roadstead.test/loopback-port"


class UnreachableError(Exception):
    """A Service leads to no port, in the words of kube-apiserver's client."""


def address_of(objects: Objects, client: Obj, timeout_s: int) -> tuple[str, int]:
    """The URL of a webhook, and the port on loopback where its server listens; 0: where the URL says.

    Args:
        objects: the Services.
        client: a ``clientConfig`` with its defaults.
        timeout_s: seconds in which the webhook is to answer.

    Raises:
        UnreachableError: the Service is missing, or names no port.
    """
    if (service := client.get("service")) is None:
        return _cleaned(client.get("url") or ""), 0
    name, namespace = service["name"], service["namespace"]
    url = _cleaned(f"https://{name}.{namespace}.svc:{service['port']}{service.get('path') or ''}")
    found = objects.find("services", namespace, name)
    text = ((found or {"metadata": {}})["metadata"].get("annotations") or {}).get(LOOPBACK_PORT, "")
    if text.isdigit():
        return url, int(text)
    why = f'service "{name}" not found' if found is None else f'no endpoints available for service "{name}"'
    raise UnreachableError(f'Post "{url}?timeout={timeout_s}s": {why}')


def _cleaned(url: str) -> str:
    """A URL as client-go calls it: without empty steps in the path, which Go's servers redirect."""
    found = urlsplit(url)
    path = posixpath.normpath(f"/{found.path.lstrip('/')}")
    return found._replace(path=path).geturl()
