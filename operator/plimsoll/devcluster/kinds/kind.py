"""The seam between the one write path and what is particular to a kind.

``Api`` calls the members in the order in which they stand here. A custom resource is one more ``Kind``: its
schema is applied in ``decode`` (types, pruning), ``default`` and ``validate_create``/``validate_update``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.devcluster.api import Api
    from plimsoll.devcluster.resources import Obj, Resource
    from plimsoll.devcluster.statuses import Cause


class Kind:
    """How objects of one resource behave. The members do nothing; a kind overrides what it needs.

    Objects passed as ``obj`` and ``new`` are the caller's own and may be changed; ``old`` is shared and may
    not.
    """

    #: Whether ``metadata.generation`` is kept: 1 at creation, one more whenever ``spec`` changes.
    counts_generation = False
    #: Whether PUT makes an object that is not there.
    creates_on_update = False
    #: Whether PUT without a resourceVersion overwrites whatever is there.
    unconditional_update = True

    def decode(self, obj: Obj, resource: Resource) -> list[str]:
        """Check types, drop fields that the schema does not know, and say which.

        Returns:
            a sentence for each dropped field, as in ``unknown field "spec.replica"``.

        Raises:
            StatusError: 400, where a value cannot be of the field's type.
        """
        del obj, resource
        return []

    def default(self, obj: Obj) -> None:
        """Fill in what was left out; also applied to the result of a patch."""
        del obj

    def prepare_create(self, obj: Obj) -> None:
        """Reset what a client may not set, such as status."""
        del obj

    def admit_create(self, obj: Obj, api: Api) -> None:
        """Complete or refuse an object by what else is in the cluster (priority classes, budgets).

        Raises:
            StatusError: 403, where admission refuses.
        """
        del obj, api

    def validate_create(self, obj: Obj) -> list[Cause]:
        """What is wrong with a new object."""
        del obj
        return []

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """Take back what the main resource may not change, such as status."""
        del new, old

    def admit_update(self, new: Obj, old: Obj, api: Api) -> None:
        """As ``admit_create``, for an update."""
        del new, old, api

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """What is wrong with an update."""
        del new, old
        return []

    def prepare_status(self, new: Obj, old: Obj) -> None:
        """Take back what the status subresource may not change: all but status and some metadata."""
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
        obj.pop("status", None)

    def prepare_update(self, new: Obj, old: Obj) -> None:
        """The main resource does not change status."""
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
