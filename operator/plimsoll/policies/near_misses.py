"""Suggestions for names that may be mistyped."""

import difflib
from collections.abc import Iterable


def near(name: str, known: Iterable[str]) -> str:
    """A suggestion for a name that may be mistyped, as the end of a sentence."""
    found = difflib.get_close_matches(name, [each for each in known if each != name], n=1, cutoff=0.75)
    return f'; did you mean "{found[0]}"?' if found else ""
