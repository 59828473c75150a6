"""Defines the parts of a server that render responses: documents and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roadstead.server.bodies.content_negotiation import JSON

if TYPE_CHECKING:
    from roadstead.values.resources import Obj, Resource


@dataclass(frozen=True, slots=True)
class Document:
    """A response to a path that names no resource."""

    content: bytes
    content_type: str = JSON
    status: int = 200


#: Returns the document at a path for an Accept header; None for an unknown path.
Documents = Callable[[str, str], Document | None]


class TableRenderer(Protocol):
    """Renders objects as ``meta.k8s.io/v1`` Table."""

    def __call__(
        self, resource: Resource, objects: Sequence[Obj], *, include_object: str, columns: bool, version: str
    ) -> Obj:
        """A Table without list metadata.

        Args:
            resource: the resource of the objects.
            objects: the rows.
            include_object: "Metadata", "Object" or "None": the content of ``rows[].object``.
            columns: whether columnDefinitions are included (a watch sends them once).
            version: "v1" or "v1beta1" of meta.k8s.io.
        """
        ...
