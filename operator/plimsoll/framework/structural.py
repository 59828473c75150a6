"""A metaclass of protocols that makes ``isinstance`` cheap.

Python 3.11 collects the members of a protocol at each check, which takes longer than the check itself.
"""

from typing import Any, Protocol

_Meta: Any = type(Protocol)


class Structural(_Meta):  # type: ignore[misc]  # the metaclass of protocols has no public name
    """Collects the members of a protocol once; the answers are those of ``typing``."""

    def __instancecheck__(self, instance: object) -> bool:
        """Whether the object has all members; methods are present if they are not None."""
        if not vars(self).get("_is_runtime_protocol"):  # a class that implements one, or typing's error
            return bool(super().__instancecheck__(instance))
        if (members := vars(self).get("_checked")) is None:
            members = self._checked = _members_of(self)
        return all(
            getattr(instance, name, None) is not None if is_method else hasattr(instance, name)
            for name, is_method in members
        )


def _members_of(protocol: type) -> tuple[tuple[str, bool], ...]:
    """Its public members, and whether each is a method."""
    bases = [base for base in protocol.__mro__ if vars(base).get("_is_protocol")]
    names = {name: None for base in bases for name in (*vars(base), *vars(base).get("__annotations__", ()))}
    return tuple(
        (name, callable(getattr(protocol, name, None))) for name in names if not name.startswith("_")
    )
