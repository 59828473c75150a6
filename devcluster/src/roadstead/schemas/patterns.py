"""Translates the API's regular expressions (RE2) to Python's."""

from __future__ import annotations

import re
from functools import lru_cache

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(r"\\z|\\.|\[:(\w+):\]|\[\^?\]?|\]|\$", re.DOTALL)


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    r"""A compiled pattern.

    ``$`` and ``\z`` mean the very end of the text, as in RE2 (Python's ``$`` lets a newline follow), and
    classes such as ``[:alpha:]`` are expanded. ``\d`` and similar classes match ASCII only.

    Raises:
        re.error: the pattern is malformed.
    """
    inside = False

    def translated(found: re.Match[str]) -> str:
        nonlocal inside
        token = found[0]
        if token == r"\z":
            return r"\Z"
        if found[1] and inside:
            return _CLASSES.get(found[1], token)
        if not inside and token.startswith("[") and not token.startswith("[:"):
            inside = True
        elif inside and token == "]":
            inside = False
        elif token == "$" and not inside:
            return r"(?!.|\n)" if "(?" in pattern and "m" in pattern else r"\Z"
        return token

    text = _TOKEN.sub(translated, pattern)
    if inside:
        raise re.error("missing closing ]", pattern)
    return re.compile(text, re.ASCII)
