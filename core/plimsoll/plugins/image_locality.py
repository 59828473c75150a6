"""ImageLocality: favour nodes that already have the pod's images.

Formula, over the pod's images on node n::

    sum[n]   = sum of int(size * (nodes that have the image / nodes))
    low      = 23 MiB,  high = 1000 MiB * images
    score[n] = 100 * (clamp(sum[n], low, high) - low) // (high - low)

Units: bytes in; points out, int64, 0..100, higher is better.
Edges: init containers and image volumes count; an image counts once per container and volume; a name without
a tag means ``latest``. Scaling the size by the share of nodes keeps pods from all going to the one node with
the image.
Source: kube-scheduler v1.37, ``imagelocality/image_locality.go``; in v1.36 volumes do not raise ``high``.
Differs: not at all.
"""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk

LOW_BYTES = 23 * 2**20
HIGH_BYTES = 1000 * 2**20


class ImageLocality(fwk.ScorePlugin):
    """Favour nodes that need not pull images."""

    name: ClassVar = "ImageLocality"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """The images."""
        return template.memo("ImageLocality.images", lambda: _images(template.sample))

    def score(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """Points per node, shape (N,)."""
        images = pod.template.memo("ImageLocality.images", lambda: _images(pod.pod))
        total = len(snapshot.whole)
        local = np.zeros(total, dtype=np.int64)
        for image in images:
            found = snapshot.image(image)
            if found is not None:
                local[found.rows] += int(found.size_bytes * (len(found.rows) / total))
        if not local.any():
            return fwk.all_feasible(snapshot)
        high = HIGH_BYTES * len(images)
        points: fwk.IntArray = (
            (np.clip(local, LOW_BYTES, high) - LOW_BYTES) * fwk.MAX_SCORE // (high - LOW_BYTES)
        )
        return snapshot.cut(points)


def _images(pod: fwk.Pod) -> tuple[str, ...]:
    """The normalised names of the pod's images, once for each container and volume."""
    spec = pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(normalized, names))


def normalized(image: str) -> str:
    """The name with its tag, which follows a colon after the last slash; without one, ``latest``."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
