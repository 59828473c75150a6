"""Bytes as JSON has them: in base64.

Source: Go's ``encoding/base64``, whose sentences these are.
"""

from __future__ import annotations

import base64
import binascii
import re

_ALPHABET = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def checked(text: str) -> str:
    """Make sure that a text is base64.

    Raises:
        ValueError: it is not, with the place where it ceases to be.
    """
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        found = _ALPHABET.match(text)
        end = found.end() if found else 0
        at = end if end < len(text) else len(text) - len(text) % 4
        raise ValueError(f"illegal base64 data at input byte {at}") from None
    return text
