"""Sanitizes text of a cluster for a terminal: one line, no control characters."""

import unicodedata

#: Categories of Unicode that move the cursor, colour, reorder or hide text.
_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def printable(text: str) -> str:
    r"""The text in one line: white space becomes a space, other control characters ``\x1b`` or ``\u202e``."""
    line = " ".join(text.split())
    if line.isascii() and line.isprintable():
        return line
    return "".join(_shown(character) for character in line)


def _shown(character: str) -> str:
    if unicodedata.category(character) in _CONTROLS:
        return character.encode("unicode_escape").decode("ascii")
    return character
