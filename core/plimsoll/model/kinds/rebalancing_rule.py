"""RebalancingRule, as it is watched: limits that the owner of a namespace sets to moves of her pods."""

from typing import Any

from plimsoll.model.kinds.metadata import ApiObject


class RebalancingRule(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A rule of one namespace.

    Attributes:
        spec: The spec as it was written, of whatever type: its reader judges it, so that an
            unreadable rule holds pods instead of being skipped.
        status: The status as it was written last; no decision reads it.
    """

    spec: Any = None
    status: Any = None
