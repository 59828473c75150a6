"""Creates NodeMaintenances from the command line."""

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.custom_resources import MAINTENANCES
from plimsoll.kube.session.errors import Conflict, NotFound
from plimsoll.kube.session.session import Session


class MaintenanceError(PlimsollError):
    """The maintenance cannot be asked for; nothing was written."""


async def create(session: Session, document: Mapping[str, Any]) -> Sequence[str]:
    """Create the object; returns the lines to print.

    Raises:
        MaintenanceError: A node does not exist, or the name is taken.
        APIError: The server refused a request, or did not respond.
    """
    name = str(document["metadata"]["name"])
    await session.object("GET", MAINTENANCES.path, params={"limit": "1"})  # whether they are served
    for node in document["spec"].get("nodes", ()):
        try:
            await session.object("GET", f"/api/v1/nodes/{node}")
        except NotFound as exc:
            raise MaintenanceError(f"there is no node {node}; kubectl get nodes lists them") from exc
    try:
        await session.object("POST", MAINTENANCES.path, document)
    except Conflict as exc:
        raise MaintenanceError(
            f"there is a NodeMaintenance {name} already; delete it (kubectl delete nmaint {name}), or give"
            " another --name"
        ) from exc
    wait = f"kubectl wait --for=condition=Drained nodemaintenance/{name} --timeout=1h"
    return [f"nodemaintenance.plimsoll.dev/{name} created", f"next: {wait}"]
