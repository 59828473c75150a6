"""Indexes container images by node, updated as nodes change.

An image state is an image name with its size and the nodes that have it. The size is the one reported by the
first of these nodes. Source: kube-scheduler v1.36, ``backend/cache`` (imageStates).
"""

from collections.abc import Iterable

from msgspec import Struct, field

from plimsoll.model.columns.node_rows import NodeRows
from plimsoll.model.kinds.node import ContainerImage


class ImageState(Struct):
    """The size of one image, and the rows of the nodes that have it."""

    size_bytes: int
    rows: NodeRows = field(default_factory=NodeRows)


class ImageTable:
    """Image states, keyed by name. A fork shares them until either side writes."""

    __slots__ = ("_shared", "_states")

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}
        self._shared = False

    def find(self, name: str) -> ImageState | None:
        """The state of an image name, as nodes report it; None if no node has it."""
        return self._states.get(name)

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Record the images of the node in this row."""
        self._own()
        for image in images:
            for name in image.names:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = ImageState(image.size_bytes)
                state.rows.add(row)

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Remove the images of the node in this row."""
        self._own()
        for image in images:
            for name in image.names:
                state = self._states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del self._states[name]

    def move_row(self, source: int, target: int, images: Iterable[ContainerImage]) -> None:
        """Move the node with these images to row ``target``, which has no images any more."""
        self._own()
        for image in images:
            for name in image.names:
                rows = self._states[name].rows
                rows.discard(source)
                rows.add(target)

    def fork(self) -> "ImageTable":
        """A copy, as lazily as possible."""
        twin = ImageTable()
        twin._states = self._states
        twin._shared = self._shared = True
        return twin

    def _own(self) -> None:
        if self._shared:
            self._states = {
                name: ImageState(state.size_bytes, state.rows.copy()) for name, state in self._states.items()
            }
            self._shared = False
