"""Embeds style and script into a page, with a policy that allows only these.

Source: Content Security Policy Level 3, hash sources (https://www.w3.org/TR/CSP3/).
"""

import base64
import hashlib
from functools import cache
from importlib import resources

#: The style of all pages, and the script of tiles.
STYLE, TILES = "report.css", "tiles.js"


@cache
def asset(name: str) -> str:
    """A file that pages have in common."""
    return (resources.files(__package__) / "assets" / name).read_text("utf-8")


def content_policy(style: str, *scripts: str) -> str:
    """The policy of a page with this style and these scripts, and nothing from elsewhere."""
    known = " ".join(f"'{_digest(each)}'" for each in scripts)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src {known}"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
