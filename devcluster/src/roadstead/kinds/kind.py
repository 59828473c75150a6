"""The seam between the one write path and what is particular to a kind.

``Api`` calls the members in the order in which they stand here. A custom resource is one more ``Kind``: its
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

#: What a kind without a schema is: any fields, with metadata as everywhere.
_OPEN = Struct("object", {"metadata": fields.struct("V1ObjectMeta")}, is_open=True)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where a kind keeps what ``scale`` shows; ``.spec.replicas`` is ("spec", "replicas")."""

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
            StatusError: 404, where nothing of this key is served.
        """
        ...


class Kind:
    """How objects of one resource behave; a kind overrides what it needs.

    Objects passed as ``obj`` and ``new`` are the caller's own and may be changed; ``old`` is shared and may
    not.
    """

    #: Whether ``metadata.generation`` is kept: 1 at creation, one more whenever ``spec`` changes.
    counts_generation = False
    #: Whether PUT makes an object that is not there.
    creates_on_update = False
    #: Whether PUT without a resourceVersion overwrites whatever is there.
    unconditional_update = True
    #: Whether DELETE answers with the object that went, not with a Status.
    returns_deleted = False
    #: What becomes of dependents where a DELETE does not say.
    default_propagation = ""

    #: Adds to the schema what a feature gate brings.
    extend_schema: Callable[[Node], Node] | None = None

    def schema(self, resource: Resource) -> Node:
        """The types of the fields, and how lists merge."""
        known = fields.schema_of(resource.group, resource.version, resource.kind) or _OPEN
        return known if self.extend_schema is None else self.extend_schema(known)

    def decode(self, obj: Obj, resource: Resource) -> tuple[Obj, list[str]]:
        """Check types and drop fields that the schema does not know.

        Returns:
            the object as it is to be stored, and the paths of the fields that were dropped.

        Raises:
            StatusError: 400, where a value cannot be of the field's type.
        """
        strays: list[str] = []
        try:
            taken: Obj = self.schema(resource).taken(obj, strays)
        except MismatchError as error:
            raise bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '
                f"json: {error}"
            ) from error
        taken.setdefault("metadata", {})
        return taken, strays

    #: Whether finalizers must say whose they are.
    qualified_finalizers = True
    #: Whether clients are warned of finalizers that do not.
    warns_of_finalizers = False

    def warnings(self, obj: Obj) -> list[str]:
        """What a client is warned about, although the write is let through."""
        if not self.warns_of_finalizers:
            return []
        return [
            f'metadata.finalizers: "{one}": prefer a domain-qualified finalizer name '
            "to avoid accidental conflicts with other finalizer writers"
            for _, one in unqualified_finalizers(obj)
        ]

    def finalizer_causes(self, obj: Obj) -> list[Cause]:
        """Which finalizers are refused."""
        if not self.qualified_finalizers:
            return []
        told = "name is neither a standard finalizer name nor is it fully qualified"
        return [
            invalid_value(f"metadata.finalizers[{index}]", one, told)
            for index, one in unqualified_finalizers(obj)
        ]

    def scale_paths(self, resource: Resource) -> ScalePaths:
        """Where the kind keeps what its scale subresource shows."""
        del resource
        return ScalePaths()

    def name_faults(self, name: str) -> list[str]:
        """What keeps a string from being the name of such an object."""
        return subdomain_faults(name)

    def default(self, obj: Obj) -> None:
        """Fill in what was left out; also applied to the result of an update."""

    def prepare_create(self, obj: Obj) -> None:
        """Reset what a client may not set, such as status."""

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """Complete or refuse an object by what else is in the cluster (priority classes, budgets).

        Raises:
            StatusError: 403, where admission refuses.
        """

    def validate_create(self, obj: Obj) -> list[Cause]:
        """What is wrong with a new object."""
        del obj
        return []

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Take back what the main resource may not change, such as status."""

    def admit_update(self, new: Obj, old: Obj, objects: Objects) -> None:
        """As ``admit_create``, for an update."""

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """What is wrong with an update."""
        del new, old
        return []

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Take back what the status subresource may not change: all but status and metadata."""
        for key in [key for key in new if key not in ("status", "metadata", "kind", "apiVersion")]:
            del new[key]
        for key, value in old.items():
            if key not in ("status", "metadata"):
                new[key] = value

    def validate_status(self, new: Obj, old: Obj) -> list[Cause]:
        """What is wrong with a new status."""
        del new, old
        return []

    def spec_changed(self, new: Obj, old: Obj) -> bool:
        """Whether an update counts as a new generation."""
        return bool(new.get("spec") != old.get("spec"))

    def begin_deletion(self, old: Obj, now: dt.datetime) -> Obj | None:
        """The object to write instead of deleting, where a kind ends in its own way.

        None means that the object is deleted as all others are.

        Raises:
            StatusError: 403, where it may not be deleted.
        """
        del old, now
        return None

    def may_end(self, obj: Obj) -> bool:
        """Whether an object without finalizers that is being deleted may go."""
        del obj
        return True

    def grace_seconds(self, obj: Obj, requested: int | None) -> int | None:
        """Seconds an object is given to end; None where the kind is deleted at once."""
        del obj, requested
        return None

    def deletion_finalizers(self, obj: Obj) -> tuple[str, ...]:
        """Finalizers that an object is given when its deletion begins."""
        del obj
        return ()

    def fields(self, obj: Obj) -> dict[str, str]:
        """What a field selector may ask for, beside metadata.name and metadata.namespace."""
        del obj
        return {}

    def field_labels(self) -> frozenset[str]:
        """The names of ``fields``."""
        return frozenset()


class StatusKind(Kind):
    """A kind with a status subresource: either kind of write leaves the other's part alone."""

    counts_generation = True

    def prepare_create(self, obj: Obj) -> None:
        """A new object has no status yet."""
        obj["status"] = {}

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """The main resource does not change status."""
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
