"""Defines a write as admission sees it, and the protocol by which ``Api`` calls admission."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

Obj = dict[str, Any]

if TYPE_CHECKING:
    from roadstead.store.progress import Progress
    from roadstead.values.resources import Resource


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write that is about to be carried out.

    Attributes:
        operation: "CREATE", "UPDATE", "DELETE" or "CONNECT".
        resource: that of the path.
        name: the name of the object; "" for a creation with ``generateName`` and in the deletion of several.
        namespace: "" for an object of the cluster.
        obj: the object after the write; None for a deletion. It must not be changed.
        old: the object before; None for a creation. It must not be changed.
        subresource: such as "status"; "" for the object itself.
        dry_run: whether nothing will be stored.
        user: the sender, as in ``userInfo``.
        options: such as CreateOptions.
        warnings: those of admission are added here.
        progress: what earlier runs of the write have learnt; None where webhooks are not asked.
        requested: the resource of the request, where ``resource`` is another version of it.
        is_again: whether a mutation sees the write once more, after others have changed its object.
        object_kind: ``kind``, where the resource does not tell it.
    """

    operation: str
    resource: Resource
    name: str
    namespace: str
    obj: Obj | None
    old: Obj | None
    subresource: str
    dry_run: bool
    user: Obj
    options: Obj = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    progress: Progress | None = None
    requested: Resource | None = None
    object_kind: tuple[str, str, str] | None = None
    is_again: bool = False

    @property
    def kind(self) -> tuple[str, str, str]:
        """Group, version and kind of the object: of a Scale, Binding or Eviction where it is one."""
        if self.object_kind is not None:
            return self.object_kind
        of = self.resource
        sub = of.subresource(self.subresource) if self.subresource else None
        if sub is not None and sub.kind:
            return sub.group, sub.version or "v1", sub.kind
        return of.group, of.version, of.kind


#: The user whose token the kubeconfig has.
ADMINISTRATOR: Obj = {"username": "roadstead-admin", "groups": ["system:masters", "system:authenticated"]}
#: The sender of writes from this process.
CONTROLLERS: Obj = {
    "username": "system:kube-controller-manager",
    "groups": ["system:masters", "system:authenticated"],
}


class Admission(Protocol):
    """Changes and judges writes."""

    def mutated(self, attempt: Attempt) -> Obj | None:
        """The object as policies change it; None where none does.

        Raises:
            StatusError: the write is rejected.
        """
        ...

    def validated(self, attempt: Attempt) -> None:
        """Judge a write whose object is valid, and warn.

        Raises:
            StatusError: the write is rejected.
        """
        ...
