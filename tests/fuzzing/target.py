"""Target is one parser that reads what others wrote, with what it may answer and what it may cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

#: Characters of a refusal: it becomes a line of a log, a condition of a status, or a message of a record.
LONGEST_SENTENCE = 4096

_VARYING = re.compile(r"[\"'`].*[\"'`]|[0-9]+", re.DOTALL)


class Broken(AssertionError):
    """A parser has answered what it must not answer."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What reading one input may cost: a constant, and so much for each of its bytes.

    Attributes:
        seconds: CPU seconds.
        seconds_each: CPU seconds for a byte.
        memory: Bytes that Python's allocators hold at the same time.
        memory_each: Such bytes for a byte of the input.
    """

    seconds: float = 0.25
    seconds_each: float = 4e-6
    memory: int = 2**22
    memory_each: float = 100.0

    def seconds_for(self, size: int) -> float:
        """CPU seconds that an input of so many bytes may take."""
        return self.seconds + self.seconds_each * size

    def memory_for(self, size: int) -> float:
        """Bytes of memory that it may take."""
        return self.memory + self.memory_each * size


@dataclass(frozen=True, slots=True)
class Target:
    """One parser.

    Attributes:
        name: For ``make fuzz TARGET=``.
        parser: Where it is.
        reads: What it reads, and whose writing that is.
        attempt: Reads one input and checks the answer; returns what kind of answer that was. It raises for an
            answer that is wrong; whatever else comes out of the parser is a fault, too.
        seeds: Inputs to begin with.
        words: What may stand in an input.
    """

    name: str
    parser: str
    reads: str
    attempt: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]
    words: tuple[bytes, ...] = ()
    bound: Bound = Bound()


def outcome(parse: Callable[[], T], *refusals: type[Exception]) -> tuple[T | None, str]:
    """What a parser returns, or the kind of its refusal.

    Raises:
        Broken: A refusal is not one sentence of a bounded length.
    """
    try:
        return parse(), ""
    except refusals as exc:
        return None, kind_of(str(exc))


def kind_of(sentence: str, *, needed: bool = True) -> str:
    """A sentence without what differs from input to input.

    Args:
        sentence: For people.
        needed: Whether it must say something.

    Raises:
        Broken: It cannot be shown to people, or is too long for that.
    """
    if needed and not sentence.strip():
        raise Broken("the refusal says nothing")
    if len(sentence) > LONGEST_SENTENCE:
        raise Broken(f"the refusal has {len(sentence)} characters: {sentence[:200]!r}...")
    try:
        sentence.encode()
    except UnicodeEncodeError as exc:
        raise Broken(f"the refusal cannot be written: {exc}") from exc
    return _VARYING.sub("_", sentence)[:120]


def text_of(data: bytes) -> str:
    """The input as text: what is no UTF-8 is replaced, as Go's JSON does before we read it."""
    return data.decode(errors="replace")
