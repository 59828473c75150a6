"""Creates NodeMaintenances from the command line, and follows them to their end."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.framework.errors import PlimsollError
from plimsoll.kube.custom_resources import MAINTENANCES
from plimsoll.kube.session.errors import Conflict, NotFound
from plimsoll.kube.session.session import Session
from plimsoll.model.counted import counted

#: Seconds between two looks at a maintenance that is followed.
LOOK_S = 1.0

#: Characters of the bar.
BAR = 20

#: Phases from which a maintenance does not go on by itself, other than Drained.
ENDS = ("Stopped", "Expired", "Suspended", "Invalid")


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
    return [f"nodemaintenance.plimsoll.dev/{name} created"]


async def follow(session: Session, name: str, timeout_s: float | None, tell: Callable[[str], None]) -> None:
    """Tell each change of a maintenance until it is drained.

    Raises:
        MaintenanceError: It has ended otherwise, is gone, or takes longer than ``timeout_s``.
        APIError: The server refused a request, or did not respond.
    """
    until = None if timeout_s is None else time.monotonic() + timeout_s
    told = ""
    while True:
        try:
            found = await session.object("GET", f"{MAINTENANCES.path}/{name}")
        except NotFound as exc:
            raise MaintenanceError(f"NodeMaintenance {name} was deleted: its nodes are opened again") from exc
        status = found.get("status") or {}
        line = progress(status)
        if line and line != told:
            tell(told := line)
        phase = status.get("phase")
        if phase == "Drained":
            return
        if phase in ENDS:
            raise MaintenanceError(f"NodeMaintenance {name} is {phase}: {_message(status)}")
        if until is not None and time.monotonic() >= until:
            raise MaintenanceError(
                f"NodeMaintenance {name} goes on, and is not drained after {timeout_s:g} s: "
                f"{_message(status)}"
            )
        await asyncio.sleep(LOOK_S)


def progress(status: Mapping[str, Any]) -> str:
    """A line on how far a maintenance has come: a bar, nodes, pods, the expected end, what is blocked."""
    nodes = status.get("nodes") or ()
    if not nodes:
        return ""
    done, total = int(status.get("drained") or 0), len(nodes)
    filled = BAR * done // total
    parts = [f"[{'#' * filled}{'.' * (BAR - filled)}] {done} of {counted(total, 'node')} drained"]
    if pods := sum(int(each.get("pods") or 0) for each in nodes):
        parts.append(f"{counted(pods, 'pod')} to move")
    if end := status.get("expectedEnd"):
        parts.append(f"expected end {end}")
    blocked = [each for each in nodes if each.get("phase") == "Blocked"]
    parts += [f"{each['name']} is blocked: {each.get('message', '')}" for each in blocked[:1]]
    if len(blocked) > 1:
        parts.append(f"and {counted(len(blocked) - 1, 'further node')}")
    return ", ".join(parts)


def _message(status: Mapping[str, Any]) -> str:
    return next((each.get("message", "") for each in status.get("conditions") or ()), "nothing is known yet")
