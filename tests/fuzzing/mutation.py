"""Mutation makes new inputs of known ones: bytes flipped, numbers replaced, parts moved and repeated."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from fuzzing import document_mutation

#: Bytes of an input as it is usually made, and of a gigantic one.
USUAL, GIGANTIC = 2**14, 2**18

_NUMBER = re.compile(rb"[0-9]+")
_NUMBERS = (
    *(b"0", b"-1", b"00", b"1", b"255", b"65536", b"2147483648", b"4294967296", b"9223372036854775807"),
    *(
        b"9223372036854775808",
        b"18446744073709551616",
        b"1e9",
        b"1e400",
        b"0x10",
        b"1_0",
        b"9" * 30,
        b"9" * 5000,
    ),
    *("٣".encode(), "²".encode(), b"+5", b" 5", b"5 ", b".", b"1.5", b"1.", b"nan", b"inf"),
)
_PIECES = (
    *(b"\x00", b"\xff", b"\xfe\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\xa8"),
    *(
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b",",
        b":",
        b"=",
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b")",
    ),
    *(
        b"<",
        b">",
        b"-",
        b"- ",
        b"!",
        b"&a ",
        b"*a",
        b"!!python/object:os.system ",
        b"!!binary ",
        b"<<: ",
        b"? ",
    ),
    *(b"| ", b"%", b"/", b"null", b"true", b"NaN", b"~", b"---\n", b"\\ud800", b"\xef\xbb\xbf", b"\x1b[2J"),
)


@dataclass(slots=True)
class _Cut:
    """An input, a span of it, and what may be put there."""

    data: bytes
    at: int
    end: int
    piece: bytes
    other: bytes
    random: Random

    @property
    def before(self) -> bytes:
        return self.data[: self.at]

    @property
    def span(self) -> bytes:
        return self.data[self.at : self.end]

    @property
    def after(self) -> bytes:
        return self.data[self.end :]

    def moved(self) -> bytes:
        """The span at another place."""
        rest = self.before + self.after
        to = self.random.randrange(len(rest) + 1)
        return rest[:to] + self.span + rest[to:]

    def renumbered(self) -> bytes:
        """Another number in place of the next one."""
        number = self.random.choice(_NUMBERS)
        found = _NUMBER.search(self.data, self.at) or _NUMBER.search(self.data)
        if found is None:
            return self.before + number + self.data[self.at :]
        return self.data[: found.start()] + number + self.data[found.end() :]


#: Changes of bytes; some are in it twice, to be made more often.
_CHANGES: tuple[Callable[[_Cut], bytes], ...] = (
    lambda cut: (
        cut.before + bytes([cut.data[cut.at] ^ 1 << cut.random.randrange(8)]) + cut.data[cut.at + 1 :]
    ),
    lambda cut: cut.before + bytes([cut.random.randrange(256)]) + cut.data[cut.at + 1 :],
    lambda cut: cut.before + cut.piece + cut.data[cut.at :],
    lambda cut: cut.before + cut.piece + cut.data[cut.at :],
    lambda cut: cut.before + cut.piece + cut.after,
    lambda cut: cut.before + cut.after,
    lambda cut: cut.before + cut.span * cut.random.choice((2, 3, 10, 41)) + cut.after,
    lambda cut: cut.before,
    lambda cut: cut.before + cut.other[cut.random.randrange(len(cut.other) + 1) :],
    lambda cut: cut.before + cut.piece * cut.random.choice((2, 30, 500)) + cut.data[cut.at :],
    _Cut.moved,
    _Cut.renumbered,
    _Cut.renumbered,
)


class Mutation:
    """Makes inputs.

    Args:
        words: What may stand in an input.
        seeds: Known inputs, whose names of members are used again.
    """

    def __init__(self, random: Random, words: Sequence[bytes], seeds: Sequence[bytes]) -> None:
        self._random = random
        self._pieces = (*_PIECES, *words, *words, *words)
        self._names = document_mutation.names_in(list(seeds))

    def of(self, known: bytes, other: bytes) -> bytes:
        """A new input, of one that is known and sometimes a part of another one."""
        made = known
        for _ in range(self._random.choice((1, 1, 1, 2, 2, 3, 5))):
            made = self._once(made, other)
        return made[:USUAL]

    def gigantic(self, known: bytes) -> bytes:
        """One with a part that is repeated until the input is large."""
        random = self._random
        size = random.choice((2**15, 2**16, GIGANTIC))
        if not known or random.random() < 0.2:
            piece = random.choice(self._pieces)
            at = random.randrange(len(known) + 1)
            return known[:at] + piece * (size // max(1, len(piece))) + known[at:]
        first, last = sorted((random.randrange(len(known)), random.randrange(len(known) + 1)))
        part = known[first:last] or known
        return known[:last] + part * (size // len(part)) + known[last:]

    def _once(self, data: bytes, other: bytes) -> bytes:
        random = self._random
        if data[:1] in (b"{", b"[") and random.random() < 0.75:
            made = self._line_changed(data)
            if made is not None:
                return made
        if not data:
            return random.choice(self._pieces)
        at = random.randrange(len(data))
        end = min(len(data), at + random.choice((1, 1, 2, 4, 8, 16, 64)))
        cut = _Cut(data, at, end, random.choice(self._pieces), other, random)
        return random.choice(_CHANGES)(cut)

    def _line_changed(self, data: bytes) -> bytes | None:
        """Of several documents in lines, one is changed."""
        lines = data.split(b"\n")
        chosen = self._random.randrange(len(lines))
        made = document_mutation.changed(lines[chosen], self._random, self._names)
        if made is None:
            return None
        lines[chosen] = made
        return b"\n".join(lines)
