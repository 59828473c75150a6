"""The list of mutants that change nothing anyone could notice, each with the reason, as judged by a person.

An entry is found again by its module, operator and text, so that it stays when lines around it change.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from mutants.mutant import Mutant

PLACE = Path(__file__).with_name("equivalents.json")


@dataclass(frozen=True, slots=True)
class Equivalent:
    """One of the list: the key of a mutant, and why nothing depends on it."""

    path: str
    operator: str
    before: str
    after: str
    why: str


@dataclass(frozen=True, slots=True)
class Equivalents:
    """The list."""

    known: dict[tuple[str, str, str, str], str]

    @classmethod
    def read(cls, place: Path = PLACE) -> Equivalents:
        """Read the list."""
        entries = msgspec.json.decode(place.read_bytes(), type=list[Equivalent]) if place.exists() else []
        return cls({(each.path, each.operator, each.before, each.after): each.why for each in entries})

    def why(self, mutant: Mutant) -> str:
        """Why a mutant is equivalent; empty if it is not known to be."""
        return self.known.get(mutant.key, "")
