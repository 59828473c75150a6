"""Metadata of objects (meta/v1), and the base of all kinds: name, namespace, labels and key."""

from datetime import datetime
from typing import Annotated

import msgspec

from plimsoll.model.read_only_dict import NO_ENTRIES

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number as the API has it; another one has the wrong type."""


class OwnerReference(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The object's creator; deleting the owner deletes the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Identity, labels and life span of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = NO_ENTRIES
    annotations: dict[str, str] = NO_ENTRIES
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def created_s(self) -> float:
        """When it was created, in seconds since the epoch; 0 if that is not stated."""
        return 0.0 if self.creation_timestamp is None else self.creation_timestamp.timestamp()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object; at most one reference says ``controller: true``.

        For the scheduler's own rules and those of kubectl; what moves pods reads ``owner``.
        """
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None

    @property
    def owners(self) -> tuple[OwnerReference, ...]:
        """The owners whose pod it is: the controller; if no reference is one, all of them."""
        if len(self.owner_references) < 2:
            return self.owner_references
        controller = self.controller
        return self.owner_references if controller is None else (controller,)

    def has_owner_of(self, *kinds: str) -> bool:
        """Whether any reference, of a controller or not, is to an owner of these kinds."""
        for owner in self.owner_references:  # noqa: SIM110 - any() with a generator takes thrice the time
            if owner.kind in kinds:
                return True
        return False

    @property
    def owner(self) -> OwnerReference | None:
        """The first of them, which counts as the one that replaces a pod; None for a bare pod."""
        owners = self.owners
        return owners[0] if owners else None


class ApiObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """An object of the API; its namespace is empty for cluster-scoped kinds."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        """Name within the namespace."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """Namespace."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """Identity: an object that is deleted and created again under its name has another uid."""
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """Labels; read-only."""
        return self.metadata.labels

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
