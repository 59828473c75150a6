"""The kubectl plugin for krew: an archive of an image's files with a launcher, and the manifest of archives.

    python -m release.krew archive ROOT linux-amd64 FOLDER
    python -m release.krew manifest FOLDER 1.2.0 ADDRESS

ROOT is the root file system of an image with the command line, which the operator's image does not have
(CONTENT). An archive of it runs on any Linux of the architecture, for it brings its own interpreter and
C library. The manifest is contrib/krew/plimsoll.yaml with those platforms that have an archive in FOLDER.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from release.archives import packed

REPOSITORY = Path(__file__).parents[2]
PREFIX = "kubectl-plimsoll"
#: What that image holds (deploy/image/assemble.py): the command line, and what it loads where it is there.
CONTENT = "kubectl-plimsoll plimsoll-core[devices] plimsoll-optimal"
LAUNCHER = """\
#!/bin/sh
# Runs plimsoll with the interpreter and the libraries of this archive.
root=$(dirname "$(readlink -f "$0")")/plimsoll
export PYTHONHOME="$root/{home}" PYTHONPATH="$root/{packages}"
# Programs that a kubeconfig names for credentials may be Python as well, and have their own.
start='import os, sys
for each in ("PYTHONHOME", "PYTHONPATH"): del os.environ[each]
sys.argv[0], sys.dont_write_bytecode = "kubectl-plimsoll", True
from plimsoll.commands.program import main
main()'
exec "$root/{loader}" --library-path "{libraries}" "$root/{python}" -c "$start" "$@"
"""


def launcher(root: Path) -> str:
    """The launcher for an image's files, wherever its interpreter and its libraries are."""
    (loader,) = [path for path in root.rglob("ld-linux*.so*") if not path.is_symlink()]
    (python,) = [path for path in root.glob("usr/**/bin/python3.*") if not path.is_symlink()]
    found = [*root.rglob("libc.so.6"), *root.rglob("libpython3.*.so*")]
    libraries = dict.fromkeys(path.parent.relative_to(root) for path in found if not path.is_symlink())
    (packages,) = [path for path in root.rglob("site-packages") if not path.is_symlink()]
    values = {
        "home": python.parents[1].relative_to(root),
        "packages": packages.relative_to(root),
        "loader": loader.relative_to(root),
        "python": python.relative_to(root),
        "libraries": ":".join(f"$root/{each}" for each in libraries),
    }
    text = LAUNCHER
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def archived(root: Path, epoch_s: int) -> bytes:
    """An archive of an image's files: LICENSE, the launcher, and the files below ``plimsoll``."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for part in ("etc", "usr"):
            shutil.copytree(root / part, folder / "plimsoll" / part, symlinks=True)
        for link in (each for each in folder.rglob("*") if each.is_symlink()):
            real = None if link.readlink().is_absolute() else link.resolve()
            link.unlink()
            if real is not None and real.is_file():  # folders are named as they are
                shutil.copy2(real, link)
        shutil.copy(REPOSITORY / "LICENSE", folder)
        (folder / PREFIX).write_text(launcher(root), encoding="utf-8")
        (folder / PREFIX).chmod(0o755)
        return packed(folder, ".", epoch_s)


def manifest(
    template: dict[str, Any], version: str, address: str, archives: dict[str, bytes]
) -> dict[str, Any]:
    """The manifest of a release.

    Args:
        template: ``contrib/krew/plimsoll.yaml``.
        version: Of the release, without ``v``.
        address: Below which the archives are.
        archives: Their bytes, by platform such as ``linux-amd64``.
    """
    platforms = []
    for each in template["spec"]["platforms"]:
        labels = each["selector"]["matchLabels"]
        platform = f"{labels['os']}-{labels['arch']}"
        if platform in archives:
            digest = hashlib.sha256(archives[platform]).hexdigest()
            platforms.append({**each, "uri": f"{address}/{PREFIX}-{platform}.tar.gz", "sha256": digest})
    return {**template, "spec": {**template["spec"], "version": f"v{version}", "platforms": platforms}}


def write_manifest(folder: Path, version: str, address: str) -> None:
    """Write ``plimsoll.krew.yaml`` for the archives in a folder; see :func:`manifest`."""
    found = {
        each.name.removeprefix(f"{PREFIX}-").removesuffix(".tar.gz"): each.read_bytes()
        for each in folder.glob(f"{PREFIX}-*.tar.gz")
    }
    template = yaml.safe_load((REPOSITORY / "contrib/krew/plimsoll.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump(manifest(template, version, address, found), sort_keys=False, width=1000)
    (folder / "plimsoll.krew.yaml").write_text(text, encoding="utf-8")


def main(verb: str, *args: str) -> None:
    """Write the archive or the manifest."""
    if verb == "archive":
        root, platform, folder = args
        content = archived(Path(root), int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
        Path(folder, f"{PREFIX}-{platform}.tar.gz").write_bytes(content)
        return
    folder, version, address = args
    write_manifest(Path(folder), version, address)


if __name__ == "__main__":
    main(*sys.argv[1:])
