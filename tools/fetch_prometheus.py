"""Unpacks prometheus and promtool from Debian's package: ``python fetch_prometheus.py BIN``.

Nothing is installed. Where there is no apt, or programs of these names are on the PATH, nothing is done.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGE = "prometheus"
PROGRAMS = ("prometheus", "promtool")


def fetch(folder: Path) -> None:
    """Write the programs into ``folder``."""
    if all(shutil.which(name) for name in PROGRAMS):
        return
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        sys.stderr.write("There is no apt here: install prometheus and promtool yourself.\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        download = ["apt-get", "download", "--quiet", "--quiet", PACKAGE]
        if subprocess.run(download, cwd=scratch, check=False, stderr=subprocess.DEVNULL).returncode:
            as_root = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
            subprocess.run([*as_root, "apt-get", "update", "--quiet", "--quiet"], check=True)
            subprocess.run(download, cwd=scratch, check=True)
        (package,) = Path(scratch).glob(f"{PACKAGE}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", package, scratch], check=True)
        for name in PROGRAMS:
            shutil.copy2(Path(scratch) / "usr/bin" / name, folder / name)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
