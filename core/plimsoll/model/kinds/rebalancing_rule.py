"""RebalancingRule: what the owner of a namespace forbids to be done to her pods, as it is watched."""

from typing import Any

from plimsoll.model.kinds.metadata import ApiObject


class RebalancingRule(ApiObject, frozen=True, kw_only=True, rename="camel", gc=False):
    """A rule of one namespace.

    Attributes:
        spec: The spec as it was written, of whatever type: its reader judges it, so that a rule nobody can
            read holds pods instead of being skipped.
        status: The status as it was written last; no decision reads it.
    """

    spec: Any = None
    status: Any = None
