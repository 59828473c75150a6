"""LimitRange (v1), reduced to what it sets on new pods and refuses of them."""

from typing import Any

import msgspec

from plimsoll.model.kinds.metadata import ApiObject
from plimsoll.model.kinds.pod import Quantities
from plimsoll.model.read_only_dict import NO_ENTRIES


class Limit(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What holds for each object of a type: ``Container``, ``Pod`` or ``PersistentVolumeClaim``."""

    type: str = ""
    default: Quantities = NO_ENTRIES
    default_request: Quantities = NO_ENTRIES
    min: Quantities = NO_ENTRIES
    max: Quantities = NO_ENTRIES
    max_limit_request_ratio: Quantities = NO_ENTRIES


class LimitRangeSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """The limits."""

    limits: tuple[Limit, ...] = ()


class LimitRange(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """Defaults and bounds of the requests and limits in a namespace."""

    spec: LimitRangeSpec = LimitRangeSpec()


class LimitRanges:
    """The LimitRanges of each namespace, sorted by their names: a ledger of the cluster's objects."""

    def __init__(self) -> None:
        self.by_namespace: dict[str, tuple[LimitRange, ...]] = {}

    def copied(self) -> "LimitRanges":
        """An independent copy."""
        twin = type(self)()
        twin.by_namespace = dict(self.by_namespace)
        return twin

    def replace(self, old: LimitRange | None, new: LimitRange | None) -> None:
        """Put a state of a LimitRange in the place of an earlier one; None for none."""
        subject: Any = new if new is not None else old
        namespace, name = subject.metadata.namespace, subject.metadata.name
        left = [each for each in self.by_namespace.pop(namespace, ()) if each.metadata.name != name]
        left += [new] if new is not None else []
        if left:
            self.by_namespace[namespace] = tuple(sorted(left, key=lambda each: each.metadata.name))
