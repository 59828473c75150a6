"""Checks the licences of the operator's dependencies: ``python licences.py LOCK``.

Read from the packages that are installed in the interpreter that runs this. Prints a table; fails with a
sentence for each package whose licence is not in ``ALLOWED``.
"""

import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

#: Licences that may go into the image: each requires of its user only that the notice is kept.
ALLOWED = frozenset(
    {"0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0"}
    | {"PSF-2.0", "Zlib"}
)

#: What packages write that have no SPDX expression: classifiers and free text.
MEANT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}


def locked(lock: Path) -> list[str]:
    """The names in a lock file."""
    return re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE)


def licence_of(package: metadata.PackageMetadata) -> str:
    """What a package says of itself, as an SPDX expression where possible; "" when it says nothing."""
    if "License-Expression" in package:
        return package["License-Expression"]
    classifiers = [str(each).rpartition(" :: ")[2] for each in package.get_all("Classifier") or ()
                   if str(each).startswith("License :: OSI Approved :: ")]  # fmt: skip
    said = classifiers or [package["License"].strip() if "License" in package else ""]
    return " OR ".join(MEANT.get(each, each) for each in said)


def is_allowed(expression: str) -> bool:
    """Whether we take it: every part of an AND, and one part of an OR."""
    while inner := re.search(r"\(([^()]*)\)", expression):
        verdict = "MIT" if is_allowed(inner[1]) else "refused"  # a licence with the same verdict
        expression = expression[: inner.start()] + verdict + expression[inner.end() :]
    return any(
        all(part.strip() in ALLOWED for part in choice.split(" AND ")) for choice in expression.split(" OR ")
    )


def licences(lock: Path) -> Iterator[tuple[str, str, str]]:
    """Name, version and licence of each package of a lock that this platform needs."""
    for name in locked(lock):
        try:
            package = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue  # of another platform
        yield name, package["Version"], licence_of(package)


def main(lock: Path) -> int:
    """Print the table; 1 when a licence is not allowed."""
    refused = []
    for name, version, licence in licences(lock):
        sys.stdout.write(f"{name:24} {version:12} {licence}\n")
        if not is_allowed(licence):
            refused.append(f'{name} is under "{licence}": not in ALLOWED of tools/licences.py\n')
    sys.stderr.writelines(refused)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
