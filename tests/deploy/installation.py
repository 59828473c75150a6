"""Installs distributions as pip would, by links to those of the environment that runs the tests.

That environment has the locked versions, whose hashes pip has compared. So nothing is fetched or unpacked
again, and a folder has no more than what was named: what is missing in a lock or in a wheel's metadata is
missing there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def locked(lock: Path) -> list[Requirement]:
    """What a lock file names for this machine."""
    lines = re.findall(r"^([A-Za-z0-9][^\\\n]*)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    found = [Requirement(line.strip()) for line in lines]
    return [each for each in found if each.marker is None or each.marker.evaluate()]


def here(requirement: Requirement) -> metadata.Distribution:
    """The distribution of this environment, which must be one that is required."""
    found = metadata.distribution(requirement.name)
    assert requirement.specifier.contains(found.version), f"{requirement}: {found.version} is installed"
    return found


def required(distributions: Iterable[metadata.Distribution]) -> list[metadata.Distribution]:
    """What these require besides one another, directly or not; an extra is taken where one names it.

    Those that are given may be wheels, of which this environment has an editable installation.
    """
    given = {canonicalize_name(each.name): each for each in distributions}
    found: dict[tuple[str, str], metadata.Distribution] = {}
    waiting = [(each, "") for each in given.values()]
    while waiting:
        distribution, extra = waiting.pop()
        for each in map(Requirement, distribution.requires or ()):
            if each.marker is not None and not each.marker.evaluate({"extra": extra}):
                continue
            for wanted in ("", *each.extras):
                key = canonicalize_name(each.name), wanted
                if key not in found:
                    found[key] = given.get(key[0]) or here(each)
                    waiting.append((found[key], wanted))
    return [*{name: each for (name, _), each in found.items() if name not in given}.values()]


def link(distributions: Iterable[metadata.Distribution], folder: Path) -> None:
    """Put the files of distributions into a folder for packages, as links; no commands and no bytecode.

    A package is one link, unless it has parts in several distributions of this environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    owners = metadata.packages_distributions()
    for distribution in distributions:
        for file in distribution.files or ():
            if ".." in file.parts or file.suffix == ".pyc":
                continue
            is_shared = len(set(owners.get(file.parts[0], ()))) > 1
            target = folder / (file if is_shared else file.parts[0])
            if not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                place = file.locate() if is_shared else distribution.locate_file(file.parts[0])
                target.symlink_to(str(place))
