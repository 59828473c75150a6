"""Adds a built site to those of other releases: ``python -m website.published build/site FOLDER 0.2.0``.

``FOLDER/0.2.0/`` gets its pages. ``versions.json`` gets all versions, newest first; from it every page,
older ones too, makes its list (``static/versions.js``). ``index.html`` leads to the newest release, or to the
newest version where there is no release yet.
"""

import json
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

#: What leads from the root to a version; relative, for a site may lie below a path.
LEADING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Plimsoll</title>
<meta http-equiv="refresh" content="0; url={0}/"><p><a href="{0}/">Plimsoll {0}</a></p></html>
"""


def versions(folder: Path) -> list[str]:
    """The versions whose pages lie in a folder, newest first; other folders are left out."""
    found = []
    for each in folder.iterdir():
        try:
            if (each / "index.html").is_file():
                found.append((Version(each.name), each.name))
        except InvalidVersion:
            continue
    return [name for _, name in sorted(found, reverse=True)]


def publish(site: Path, folder: Path, version: str) -> None:
    """Write a version's pages, in place of what lay there, and the list of all.

    Raises:
        InvalidVersion: The version is not one such as ``1.2.0``.
    """
    Version(version)
    shutil.rmtree(folder / version, ignore_errors=True)
    shutil.copytree(site, folder / version)
    found = versions(folder)
    released = [each for each in found if not Version(each).is_prerelease]
    (folder / "versions.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(LEADING.format((released or found)[0]), encoding="utf-8")
    (folder / ".nojekyll").touch()  # else GitHub leaves out _static


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
