"""Books volumes for claims that wait for their pod, writes the bookings, and waits until they are bound.

A booking is the object as the API server will show it after the write: the volume with its ``claimRef``, or
the claim with its selected node. It overlays the cluster's objects, so the next decision sees it, until the
watch delivers a newer state or the attempt fails.

Source: kube-scheduler v1.36, ``volumebinding/binder.go`` (``AssumePodVolumes``, ``BindPodVolumes``).
"""

from typing import Any

import msgspec
import numpy as np

from plimsoll.cluster.cache import Cache
from plimsoll.framework import SUCCESS, Snapshot, Status, error
from plimsoll.framework.binding_ports import VolumeChoices
from plimsoll.model.kinds.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from plimsoll.model.kinds.volume_claims import SELECTED_NODE, is_bound
from plimsoll.model.selectors import compile_node_terms
from plimsoll.ports.clock import Clock
from plimsoll.ports.objects import VolumeWriter
from plimsoll.timing.task_sets import first_of
from plimsoll.toolkit.node_matching import term_nodes


class ClaimBinder:
    """Books and binds volumes; the second writer of the objects besides ingestion, in the same event loop."""

    def __init__(self, cache: Cache, writer: VolumeWriter, clock: Clock) -> None:
        self.cluster = cache.cluster
        self._objects = cache.cluster.objects
        self._changed = cache.volumes_changed
        self._writer = writer
        self._clock = clock
        self._assumed: dict[str, tuple[dict[str, Any], str, Any, Any]] = {}

    def assume(self, choices: VolumeChoices, node: str) -> None:
        """Overlay the objects with the bookings."""
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
        """Remove the bookings from the overlay; newer states from the watch stay."""
        for claim in choices:
            shelf, key, before, booked = self._assumed.pop(claim, ({}, "", None, None))
            if booked is not None and shelf.get(key) is booked:
                shelf[key] = before
                self._objects.version += 1

    async def bind(self, choices: VolumeChoices, node: str, timeout_s: float) -> Status:
        """Write, then wait until all are bound, or until one cannot be bound for this node any more."""
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
        while True:
            seen = self._changed.count
            for key, volume in choices.items():
                problem = self._problem(key, volume, node)
                if problem:
                    return error(f"binding volumes: {problem}")
            waiting = [key for key in choices if not self._is_bound(key)]
            if not waiting:
                return SUCCESS
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                return error(f"binding volumes: timed out waiting for {', '.join(waiting)}")
            await first_of(self._changed.wait(seen), self._clock.sleep(remaining_s))

    def _problem(self, key: str, volume: str, node: str) -> str:
        """Why a claim cannot serve the pod on this node; empty while it may."""
        claim = self._objects.claims.get(key)
        if claim is None:
            return f'persistentvolumeclaim "{key}" not found'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{key}" is being deleted'
        if not is_bound(claim):
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if volume or selected == node:
                return ""
            if selected is None:
                return f'provisioning failed for persistentvolumeclaim "{key}"'
            return f'persistentvolumeclaim "{key}" is provisioned for node "{selected}" by now'
        found = self._objects.volumes.get(claim.spec.volume_name)
        if found is None or self._reaches(found, node):
            return ""
        return f'persistentvolume "{found.name}" of "{key}" cannot be reached from node "{node}"'

    def _reaches(self, volume: PersistentVolume, node: str) -> bool:
        """Whether the node satisfies the volume's affinity."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return True
        row = self.cluster.rows.get(node)
        if row is None:
            return False
        there = Snapshot(self.cluster).at(np.array([row], dtype=np.intp))
        return any(term_nodes(term, there)[0] for term in compile_node_terms(affinity.required))

    def _is_bound(self, key: str) -> bool:
        claim = self._objects.claims.get(key)
        return claim is not None and is_bound(claim)


def reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume, reserved for a claim."""
    meta = claim.metadata
    reference = ObjectReference(
        kind="PersistentVolumeClaim", namespace=meta.namespace, name=meta.name, uid=meta.uid
    )
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=reference))


def provisioned(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """The claim, to be provisioned where ``node`` can reach it."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
    return msgspec.structs.replace(
        claim, metadata=msgspec.structs.replace(claim.metadata, annotations=annotations)
    )
