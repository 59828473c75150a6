"""Asks for nodes to be emptied, and reads what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from e2e.polls import eventually

if TYPE_CHECKING:
    from e2e.scene import Obj, Scene

MAINTENANCES = "/apis/plimsoll.dev/v1alpha1/nodemaintenances"


async def maintenance(scene: Scene, *nodes: str, **spec: Any) -> str:
    """Ask for nodes to be emptied; the path of the object."""
    name = f"{scene.name}-kernel"
    document: Obj = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "NodeMaintenance",
        "metadata": {"name": name},
        "spec": {"nodes": list(nodes), **spec},
    }
    await scene.make(MAINTENANCES, document)
    return f"{MAINTENANCES}/{name}"


async def status(scene: Scene, path: str) -> Obj:
    """What the operator says of it."""
    found: Obj = (await scene.speaker.request("GET", path)).accepted().get("status", {})
    return found


async def until_phase(scene: Scene, path: str, phase: str) -> Obj:
    """Wait until it has come so far; its status."""
    return await eventually(lambda: status(scene, path), lambda found: found.get("phase") == phase)
