"""Installs Plimsoll into the demo's cluster: its kinds, a namespace, and the policy that serves its pods."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from plimsoll.api.crds import crd
from plimsoll.api.v1alpha1 import KINDS

from .client import Client, Obj, RequestError
from .inventory import NAMESPACE

#: Seconds that the operator gets to serve the policy.
READY_S = 30.0


async def install_kinds(client: Client) -> None:
    """Define the kinds, and create the namespace of the workloads."""
    for definition in map(crd, KINDS):
        await client.create(definition)
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


async def install_scheduler(client: Client, examples: Path, alive: Callable[[], None]) -> None:
    """Apply the scheduling policy and wait until the operator serves it; a busy machine starts it slowly."""
    await _until_served(client, "SchedulingPolicy")
    await client.create(example(examples, "scheduler.yaml"))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(READY_S):
            while not all(_ready(policy) for policy in await client.list("SchedulingPolicy")):
                alive()
                await asyncio.sleep(0.1)


def example(folder: Path, name: str) -> dict[str, Any]:
    """An example policy."""
    document: dict[str, Any] = yaml.safe_load((folder / name).read_text(encoding="utf-8"))
    return document


async def _until_served(client: Client, kind: str) -> None:
    for _ in range(100):
        try:
            await client.list(kind)
        except RequestError:
            await asyncio.sleep(0.1)
        else:
            return


def _ready(policy: Obj) -> bool:
    """Whether the operator serves the policy."""
    conditions = policy.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
