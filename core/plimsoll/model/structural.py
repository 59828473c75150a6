"""A metaclass of protocols that makes ``isinstance`` cheap.

Python 3.11 collects the members of a protocol at each check, which takes longer than the check itself.
"""

from functools import cache
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from abc import ABCMeta as ProtocolMeta
else:
    ProtocolMeta = type(Protocol)  # its name is not public


class Structural(ProtocolMeta):
    """Collects the members of a protocol once; the answers are those of ``typing``."""

    def __instancecheck__(self, instance: object) -> bool:
        """Whether the object has all members; methods are present if they are not None."""
        if not vars(self).get("_is_runtime_protocol"):  # a class that implements one, or typing's error
            return super().__instancecheck__(instance)
        return all(
            getattr(instance, name, None) is not None if is_method else hasattr(instance, name)
            for name, is_method in _members_of(self)
        )


@cache  # not kept in the protocol: typing would take it for a member
def _members_of(protocol: type) -> tuple[tuple[str, bool], ...]:
    """Its public members, and whether each is a method."""
    bases = [base for base in protocol.__mro__ if vars(base).get("_is_protocol")]
    names = {name: None for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return tuple(
        (name, callable(getattr(protocol, name, None))) for name in names if not name.startswith("_")
    )
