"""Defines ``Kind``, by which the write path calls the behaviour of each kind.

``Api`` calls the members in the order of their definition. A custom resource is a ``Kind`` as well: its
schema is applied in ``decode`` (types, pruning), ``default`` and ``validate_create``/``validate_update``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roadstead.kinds.checks.metadata import invalid_value, subdomain_faults, unqualified_finalizers
from roadstead.schemas import fields
from roadstead.schemas.schemas import MismatchError, Node, Struct
from roadstead.values.status_errors import bad_request

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from roadstead.values.resources import Obj, Resource
    from roadstead.values.status_errors import Cause

#: The schema of a kind without one: any fields, and metadata.
_OPEN = Struct("object", {"metadata": fields.struct("V1ObjectMeta")}, is_open=True)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The paths of the fields in ``scale``; ``.spec.replicas`` is ("spec", "replicas")."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


class Objects(Protocol):
    """The objects of the cluster, as admission reads them; ``store.api.Api`` is one."""

    def find(self, resource: str | Resource, namespace: str | None, name: str) -> Obj | None:
        """An object, or None."""
        ...

    def list(self, resource: str | Resource, namespace: str | None = None) -> list[Obj]:
        """Objects in the order of their keys; ``namespace=None`` means all."""
        ...

    def resource(self, resource: str | Resource) -> Resource:
        """The resource of a key.

        Raises:
            StatusError: 404, if no resource has this key.
        """
        ...


class Kind:
    """The behaviour of the objects of one resource; subclasses override methods.

    ``obj`` and ``new`` are mutable; ``old`` is shared and must not be changed.
    """

    #: Whether ``metadata.generation`` counts: 1 at creation, incremented by each change of ``spec``.
    counts_generation = False
    #: Whether PUT creates a missing object.
    creates_on_update = False
    #: Whether PUT without a resourceVersion overwrites any version.
    unconditional_update = True
    #: Whether DELETE returns the deleted object in place of a Status.
    returns_deleted = False
    #: The default propagation of a DELETE.
    default_propagation = ""

    #: Whether pod specs keep ``schedulingGroup``, as with the gate GenericWorkload.
    keeps_scheduling_group = False
    #: Adds the fields of a feature gate to the schema.
    extend_schema: Callable[[Node], Node] | None = None

    def schema(self, resource: Resource) -> Node:
        """The types of the fields and the merging of lists."""
        known = fields.schema_of(resource.group, resource.version, resource.kind) or _OPEN
        return known if self.extend_schema is None else self.extend_schema(known)

    def decode(self, obj: Obj, resource: Resource) -> tuple[Obj, list[str]]:
        """Check types and drop unknown fields.

        Returns:
            the object to store, and the paths of the dropped fields.

        Raises:
            StatusError: 400, if a value does not fit the field's type.
        """
        strays: list[str] = []
        try:
            taken: Obj = self.schema(resource).taken(obj, strays)
        except MismatchError as error:
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"{error}"
            ) from error
        taken.setdefault("metadata", {})
        return taken, strays

    #: Whether finalizers must be qualified names.
    qualified_finalizers = True
    #: Whether clients are warned about unqualified finalizers.
    warns_of_finalizers = False

    def warnings(self, obj: Obj) -> list[str]:
        """Warnings for the client of a valid write."""
        if not self.warns_of_finalizers:
            return []
        return [
            f'metadata.finalizers: "{one}": prefer a domain-qualified finalizer name '
            "to avoid accidental conflicts with other finalizer writers"
            for _, one in unqualified_finalizers(obj)
        ]

    def finalizer_causes(self, obj: Obj) -> list[Cause]:
        """Causes for rejected finalizers."""
        if not self.qualified_finalizers:
            return []
        message = "name is neither a standard finalizer name nor is it fully qualified"
        return [
            invalid_value(f"metadata.finalizers[{index}]", one, message)
            for index, one in unqualified_finalizers(obj)
        ]

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """The paths of the fields in the scale subresource."""
        del resource
        return ScalePaths()

    def name_faults(self, name: str) -> list[str]:
        """Faults of a string as the name of such an object."""
        return subdomain_faults(name)

    def default(self, obj: Obj) -> None:
        """Set defaults; also applied to the result of an update."""

    def coerce(self, obj: Obj) -> None:
        """Drop what an object has from another version that it was converted from."""

    def prepare_create(self, obj: Obj) -> None:
        """Reset fields that clients must not set, such as status."""

    def note_sender(self, obj: Obj, user: Obj) -> None:
        """Complete a new object by who sends it; ``user`` is as in ``userInfo``."""

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Complete or reject an object according to other objects, such as priority classes.

        Raises:
            StatusError: 403, if admission rejects it.
        """

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new object."""
        del obj
        return []

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Restore fields that the main resource must not change, such as status."""

    def admit_update(self, new: Obj, old: Obj, objects: Objects) -> None:
        """As ``admit_create``, for an update."""

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of an update."""
        del new, old
        return []

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Restore fields that the status subresource must not change: all but status and metadata."""
        for key in [key for key in new if key not in ("status", "metadata", "kind", "apiVersion")]:
            del new[key]
        for key, value in old.items():
            if key not in ("status", "metadata"):
                new[key] = value

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """Faults of a new status."""
        del new, old
        return []

    def prepare_part(self, new: Obj, old: Obj, subresource: str) -> None:
        """Restore fields that another subresource with a part of the object must not change."""
        del subresource
        self.prepare_update(new, old)

    def validate_part(self, new: Obj, old: Obj, subresource: str) -> list[Cause]:
        """Faults of an update of such a subresource."""
        del subresource
        return self.validate_update(new, old)

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """Whether an update counts as a new generation."""
        return bool(new.get("spec") != old.get("spec"))

    def begin_deletion(self, old: Obj, now: dt.datetime) -> Obj | None:
        """The object to write instead of deleting it, for a kind with its own deletion.

        None for the usual deletion.

        Raises:
            StatusError: 403, if it must not be deleted.
        """
        del old, now
        return None

    def may_end(self, obj: Obj) -> bool:
        """Whether an object that is being deleted and has no finalizers is removed."""
        del obj
        return True

    def grace_seconds(self, obj: Obj, requested: int | None) -> int | None:
        """The grace period in seconds; None for a kind without one."""
        del obj, requested
        return None

    def deletion_finalizers(self, obj: Obj) -> tuple[str, ...]:
        """Finalizers that are added when a deletion begins."""
        del obj
        return ()

    def fields(self, obj: Obj) -> dict[str, str]:
        """The values of field selectors other than metadata.name and metadata.namespace."""
        del obj
        return {}

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset()


class StatusKind(Kind):
    """A kind with a status subresource: writes of either leave the other's part unchanged."""

    counts_generation = True

    def prepare_create(self, obj: Obj) -> None:
        """A new object has no status."""
        obj["status"] = {}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """The main resource does not change status."""
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
