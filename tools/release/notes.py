"""Release notes: the section of a version in CHANGELOG.md, with links that lead to the repository.

The format is Keep a Changelog: ``## [1.2.0] - 2026-01-31``, below it ``### Added`` and so on, a line each.
"""

import re

#: What Artifact Hub calls the kinds of entries.
KINDS = {
    "Added": "added",
    "Changed": "changed",
    "Deprecated": "deprecated",
    "Removed": "removed",
    "Fixed": "fixed",
    "Security": "security",
}


class NoSectionError(Exception):
    """The changelog has nothing about a version, or says it in a form that is not read."""


def section(changelog: str, version: str) -> str:
    """What the changelog says about a version.

    Args:
        changelog: The text of CHANGELOG.md.
        version: ``1.2.0``, or ``Unreleased``.

    Raises:
        NoSectionError: Without such a section, or without an entry in it.
    """
    heading = re.escape(f"## [{version}]")
    found = re.search(rf"^{heading}[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    if found is None or not entries(found[1]):
        raise NoSectionError(
            f"CHANGELOG.md has no entries under {version}: move those under Unreleased there"
        )
    return found[1].strip() + "\n"


def entries(text: str) -> list[tuple[str, str]]:
    """Kind and words of each entry, in order.

    Raises:
        NoSectionError: For a kind that Keep a Changelog does not have.
    """
    kind, found = "", []
    for line in text.splitlines():
        if line.startswith("### "):
            kind = line.removeprefix("### ").strip()
            if kind not in KINDS:
                raise NoSectionError(f"Keep a Changelog does not know {kind}, only {', '.join(KINDS)}")
        elif line.startswith("- "):
            found.append((kind, line.removeprefix("- ")))
    return found


def linked(text: str, files: str) -> str:
    """The text with links to files of the repository below an address; "" leaves only their words."""
    if files:
        return re.sub(r"\]\((?!https?://|#)([^)]+)\)", rf"]({files}/\1)", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]+\)", r"\1", text)


def artifacthub_changes(text: str) -> list[dict[str, str]]:
    """The entries as the annotation ``artifacthub.io/changes`` has them."""
    return [{"kind": KINDS[kind], "description": linked(words, "")} for kind, words in entries(text)]
