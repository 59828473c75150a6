"""deploy/image/build.py and its target: arguments, and refusals before a build begins."""

from __future__ import annotations

import subprocess
import sys

from deploy.tools import ROOT

BUILD = str(ROOT / "deploy/image/build.py")


def done(*command: str) -> subprocess.CompletedProcess[str]:
    """A command in this checkout."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_unknown_architecture_is_refused() -> None:
    """In one sentence that names those that can be built."""
    refused = done(sys.executable, BUILD, "dist/none", "", "sparc")

    assert refused.returncode == 1
    assert refused.stderr == "the image is built for amd64 and arm64, not for sparc\n"


def test_the_target_hands_on_that_no_extras_are_wanted() -> None:
    """``CONTENT=plimsoll`` is the smallest image, and not the default."""
    told = done("make", "-n", "image-layout", "CONTENT=plimsoll", "ARCHITECTURE=arm64")

    assert 'deploy/image/build.py dist/image "plimsoll" arm64' in told.stdout
