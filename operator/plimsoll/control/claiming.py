"""Volumes for claims that waited for their pod: booked in memory, written, awaited.

A booking is what the API server will show once it is written: the volume's ``claimRef``, or the claim's
selected node. It lies on the shelf of the cluster's objects, where the next decision sees it, until the watch
brings a newer state or the attempt fails.

Source: kube-scheduler v1.36, ``volumebinding/binder.go`` (``AssumePodVolumes``, ``BindPodVolumes``).
"""

from typing import Any

import msgspec

from plimsoll.control.ports import Clock, VolumeWriter
from plimsoll.framework import (
    SELECTED_NODE,
    SUCCESS,
    ClusterObjects,
    PersistentVolume,
    PersistentVolumeClaim,
    Status,
    VolumeChoices,
    error,
    is_bound,
)
from plimsoll.model.storage import ObjectReference

#: Seconds between two looks at claims that are being bound.
PACE_S = 1.0


class ClaimBinder:
    """Books and binds; the objects' second writer besides ingestion, in the same event loop.

    Args:
        objects: The shelves of the cluster.
        writer: Writes to the API server.
        clock: Time.
    """

    def __init__(self, objects: ClusterObjects, writer: VolumeWriter, clock: Clock) -> None:
        self._objects = objects
        self._writer = writer
        self._clock = clock
        self._assumed: dict[str, tuple[dict[str, Any], str, Any, Any]] = {}

    def assume(self, choices: VolumeChoices, node: str) -> None:
        """Put the bookings on the shelves."""
        objects = self._objects
        for key, volume in choices.items():
            claim = objects.claims.get(key)
            if claim is None:
                continue
            if volume and volume in objects.volumes:
                self._book(key, objects.volumes, volume, reserved(objects.volumes[volume], claim))
            elif not volume and claim.metadata.annotations.get(SELECTED_NODE) != node:
                self._book(key, objects.claims, key, provisioned(claim, node))

    def _book(self, claim: str, shelf: dict[str, Any], key: str, booked: Any) -> None:
        self._assumed[claim] = (shelf, key, shelf[key], booked)
        shelf[key] = booked
        self._objects.version += 1

    def forget(self, choices: VolumeChoices) -> None:
        """Take bookings off the shelves; what the watch has brought since stays."""
        for claim in choices:
            shelf, key, before, booked = self._assumed.pop(claim, ({}, "", None, None))
            if booked is not None and shelf.get(key) is booked:
                shelf[key] = before
                self._objects.version += 1

    async def bind(self, choices: VolumeChoices, node: str, timeout_s: float) -> Status:
        """Write, then look every second."""
        for key, volume in choices.items():
            claim = self._objects.claims.get(key)
            if claim is None:
                return error(f'binding volumes: persistentvolumeclaim "{key}" not found')
            found = self._objects.volumes.get(volume)
            if not volume:
                answer = await self._writer.select_node(claim, node)
            elif found is not None:
                answer = await self._writer.reserve(found, claim)
            else:
                return error(f'binding volumes: persistentvolume "{volume}" not found')
            if not answer.is_done:
                return error(f"binding volumes: {answer.message}")
        deadline = self._clock.monotonic() + timeout_s
        while not all(self._is_bound(key) for key in choices):
            if self._clock.monotonic() >= deadline:
                waiting = ", ".join(key for key in choices if not self._is_bound(key))
                return error(f"binding volumes: timed out waiting for {waiting}")
            await self._clock.sleep(PACE_S)
            for key, volume in choices.items():
                claim = self._objects.claims.get(key)
                if claim is None:
                    return error(f'binding volumes: persistentvolumeclaim "{key}" not found')
                if not volume and not is_bound(claim) and SELECTED_NODE not in claim.metadata.annotations:
                    return error(f'binding volumes: provisioning failed for persistentvolumeclaim "{key}"')
        return SUCCESS

    def _is_bound(self, key: str) -> bool:
        claim = self._objects.claims.get(key)
        return claim is not None and is_bound(claim)


def reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume, kept for a claim."""
    meta = claim.metadata
    reference = ObjectReference(
        kind="PersistentVolumeClaim", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=reference))


def provisioned(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """The claim, to be provisioned where ``node`` reaches it."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations)
    )
