"""Indexes container images by node, updated as nodes change.

An image state is an image name with its size and the nodes that have it. The size is the one reported by the
first of these nodes. Source: kube-scheduler v1.36, ``backend/cache`` (imageStates).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from plimsoll.model.columns.node_rows import NodeRows
from plimsoll.model.heavy_objects import fitting
from plimsoll.model.kinds.node import ContainerImage

#: Different images that are looked at together: where nodes share none, their rows take memory.
MOST_IMAGES = 50_000


class ImageState(Struct):
    """The size of one image, and the rows of the nodes that have it."""

    size_bytes: int
    rows: NodeRows = field(default_factory=NodeRows)


class _OnOneNode(NamedTuple):
    """The same of an image that one node has: a node may report a hundred thousand names of its own."""

    size_bytes: int
    row: int


class ImageTable:
    """Image states, keyed by name. A fork shares each of them until either side changes it."""

    __slots__ = ("_is_shared", "_own", "_states")

    def __init__(self) -> None:
        self._states: dict[str, ImageState | _OnOneNode] = {}
        self._is_shared = False
        self._own: set[str] = set()  #: names of states that no fork has

    def find(self, name: str) -> ImageState | None:
        """The state of an image name, as nodes report it; None if no node has it."""
        found = self._states.get(name)
        return _on_several(found) if isinstance(found, _OnOneNode) else found

    def add(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Record the images of the node in this row."""
        states = self._writable()
        for image in images:
            for name in image.names:
                state = states.get(name)
                if state is None:
                    states[name] = _OnOneNode(image.size_bytes, row)
                elif not isinstance(state, _OnOneNode) or state.row != row:
                    self._rows(name, state).add(row)

    def add_all(self, nodes: Iterable[Iterable[ContainerImage]]) -> None:
        """Record the images of the nodes in rows 0, 1 and so on.

        Nodes share equal images (``cluster.shared_objects``), so the names of each are looked up once, and
        not for each node that has it.
        """
        having: dict[int, tuple[ContainerImage, list[int]]] = {}
        for row, images in enumerate(nodes):
            for image in images:
                known = having.get(id(image))
                if known is None:
                    having[id(image)] = image, [row]
                else:
                    known[1].append(row)
            if len(having) > MOST_IMAGES:
                self._enter(having.values())
                having = {}
        self._enter(having.values())

    def _enter(self, having: Iterable[tuple[ContainerImage, list[int]]]) -> None:
        """Record images and the rows of their nodes, in the order of the first of these."""
        states = self._writable()
        for image, found in having:
            rows = np.array(found, dtype=np.intp)
            for name in image.names:
                state = states.get(name)
                if state is None:
                    state = states[name] = _OnOneNode(image.size_bytes, found[0])
                if not isinstance(state, _OnOneNode) or state.row != found[0] or found[0] != found[-1]:
                    self._rows(name, state).add_all(rows)

    def remove(self, row: int, images: Iterable[ContainerImage]) -> None:
        """Remove the images of the node in this row."""
        states = self._writable()
        for image in images:
            for name in image.names:
                state = states.get(name)
                if isinstance(state, _OnOneNode):
                    if state.row == row:
                        del states[name]
                elif state is not None:
                    rows = self._rows(name, state)
                    rows.discard(row)
                    if not rows:
                        del states[name]
                        self._own.discard(name)
        self._states, self._own = fitting(states), fitting(self._own)

    def move_row(self, source: int, target: int, images: Iterable[ContainerImage]) -> None:
        """Move the node with these images to row ``target``, which has no images any more."""
        states = self._writable()
        for image in images:
            for name in image.names:
                state = states[name]
                if isinstance(state, _OnOneNode):
                    states[name] = _OnOneNode(state.size_bytes, target)
                else:
                    rows = self._rows(name, state)
                    rows.discard(source)
                    rows.add(target)

    def fork(self) -> "ImageTable":
        """A copy, as lazily as possible."""
        twin = ImageTable()
        twin._states = self._states
        twin._is_shared = self._is_shared = True
        self._own = set()
        return twin

    def _writable(self) -> dict[str, ImageState | _OnOneNode]:
        if self._is_shared:
            self._states = dict(self._states)
            self._is_shared = False
        return self._states

    def _rows(self, name: str, state: ImageState | _OnOneNode) -> NodeRows:
        """The rows of a state, to be changed."""
        if name not in self._own:
            if isinstance(state, _OnOneNode):
                state = _on_several(state)
            else:
                state = ImageState(state.size_bytes, state.rows.copy())
            self._states[name] = state
            self._own.add(name)
        assert isinstance(state, ImageState)
        return state.rows


def _on_several(state: _OnOneNode) -> ImageState:
    found = ImageState(state.size_bytes)
    found.rows.add(state.row)
    return found
