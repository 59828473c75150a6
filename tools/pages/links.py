"""Writes every address outside and where it is named: ``python -m pages.links docs/reference/links.md``.

Addresses are checked for their form and not asked: https, a host with a dot, no user, port or white space.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/links.md"
LEAD = (
    "Addresses outside this documentation, and the pages that name them. The site loads nothing from them."
    " Their form is checked; whether they answer depends on others."
)
_LINK = re.compile(r"\]\((https?://[^)\s]*)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def links() -> dict[str, list[Path]]:
    """Returns the pages by the address that they name, both sorted."""
    found: dict[str, list[Path]] = {}
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    for path in sorted(pages):
        if path == PAGE:
            continue
        for address in sorted(set(_LINK.findall(_CODE.sub("", path.read_text(encoding="utf-8"))))):
            found.setdefault(address, []).append(path)
    return dict(sorted(found.items()))


def malformed(address: str) -> str:
    """What is wrong with the form of an address, "" for nothing."""
    parts = urlsplit(address)
    if parts.scheme != "https":
        return "is not https"
    if "." not in (parts.hostname or "") or parts.netloc != parts.hostname:
        return "has no public host, or more than a host"
    return "" if re.fullmatch(r"[\x21-\x7e]+", address) else "has characters that are to be encoded"


def page(found: Mapping[str, list[Path]]) -> str:
    """Returns the page, in Markdown.

    Raises:
        ValueError: An address is not well formed.
    """
    rows = []
    for address, named in found.items():
        if problem := malformed(address):
            raise ValueError(f"{address} in {named[0].name} {problem}")
        shown = [path for path in named if path.is_relative_to(ROOT / "docs")]
        where = [f"[{path.stem}]({Path('..') / path.relative_to(ROOT / 'docs')})" for path in shown]
        others = [f"`{path.name}`" for path in named if path not in shown]
        rows.append(f"| <{address}> | {', '.join([*where, *others])} |\n")
    head = f"# Links to other places\n\n{LEAD}\n\nWritten by `make docs` from the pages: change those.\n\n"
    return f"{head}| Address | Named in |\n| --- | --- |\n{''.join(rows)}"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(links()), encoding="utf-8")
