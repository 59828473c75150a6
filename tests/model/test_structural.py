"""Protocols that collect their members once, against those of ``typing``."""

from typing import ClassVar, Protocol, runtime_checkable

import pytest

from plimsoll.model.structural import Structural


@runtime_checkable
class Plain(Protocol):
    name: ClassVar[str]

    def does(self) -> int: ...


@runtime_checkable
class Quick(Protocol, metaclass=Structural):
    name: ClassVar[str]

    def does(self) -> int: ...


@runtime_checkable
class PlainAndMore(Plain, Protocol):
    @property
    def more(self) -> int: ...


@runtime_checkable
class QuickAndMore(Quick, Protocol):
    @property
    def more(self) -> int: ...


class Whole:
    name = "whole"

    def does(self) -> int:
        return 1


class More(Whole):
    more: int | None = None


class Late:
    """Has its members from ``__init__``, if it has them."""

    def __init__(self, *names: str) -> None:
        for each in names:
            setattr(self, each, len)


class Blocked(Whole):
    does = None  # type: ignore[assignment] # as Python blocks a method


class Said(Quick):
    name = "said"

    def does(self) -> int:
        return 2


OBJECTS = (
    Whole(),
    More(),
    Late("name", "does", "more"),
    Late("does"),
    Late("more"),
    Late(),
    Blocked(),
    Said(),
    Whole,
    None,
)


@pytest.mark.parametrize("given", OBJECTS, ids=lambda each: getattr(each, "__name__", type(each).__name__))
def test_what_has_the_members_is_what_typing_finds(given: object) -> None:
    for _ in range(2):
        assert isinstance(given, Quick) is isinstance(given, Plain)
        assert isinstance(given, QuickAndMore) is isinstance(given, PlainAndMore)


def test_a_class_that_implements_a_protocol_is_checked_by_its_name() -> None:
    assert isinstance(Said(), Said)
    assert not isinstance(Whole(), Said)


def test_a_protocol_that_must_not_be_checked_is_an_error() -> None:
    class Unchecked(Protocol, metaclass=Structural):
        name: ClassVar[str]

    with pytest.raises(TypeError, match="@runtime_checkable"):
        isinstance(Whole(), Unchecked)  # type: ignore[misc] # that is the error
