"""The image, as far as it goes without a container engine: its steps are carried out, its files are a root.

Each RUN line of the Dockerfile is executed as written, in an environment as empty as that of the first stage,
with folders of the test in place of the stage's. What it puts together is entered with chroot, as an
unprivileged user, and not writable.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import plimsoll
from deploy.tools import ROOT, tool

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.slow,  # installs the locked dependencies into an empty environment
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The root folder that the Dockerfile's second stage copies."""
    folder = Path(tempfile.mkdtemp())  # pytest's folders are closed to other users
    folder.chmod(0o755)
    try:
        _run_the_first_stage(folder)
        subprocess.run(["chmod", "-R", "a-w,a+rX", str(folder / "assembled")], check=True)
        yield folder / "assembled"
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(folder)], check=False)
        shutil.rmtree(folder)


def _run_the_first_stage(folder: Path) -> None:
    venv.create(folder / "venv")
    # The pip that runs the tests, for that environment: an own one would have to be installed and compiled.
    pip = folder / "venv/bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {folder}/venv/bin/python "$@"\n')
    pip.chmod(0o755)
    source = folder / "src"
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        *names, target = line.split()
        for name in names:
            path = source / target / (Path(name).name if target.endswith("/") else "")
            path.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, path, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, path)
    environment = {
        **os.environ,
        "PATH": f"{folder}/venv/bin:/usr/bin:/bin",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    # A compiler is on this machine, or the wheel is pure: apt-get is not run.
    for line in re.findall(r"^RUN (?!..apt-get)(.+)$", DOCKERFILE, re.MULTILINE):
        program, *args = (
            re.sub(r"(^|=)/(installed|assembled)$", rf"\1{folder}/\2", part) for part in json.loads(line)
        )
        done = subprocess.run(
            [f"{folder}/venv/bin/{program}", *args],
            cwd=source,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def inside(image: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the image's Python in the image, as its user."""
    python = Path(sys.base_prefix, "bin/python")
    if os.geteuid() == 0:
        enter = ["chroot", "--userspec=65532:65532", str(image)]
    else:
        enter = ["unshare", "--user", "--map-user=65532", "--map-group=65532", f"--root={image}"]
    environment = {
        "PATH": f"{python.parent}:/usr/sbin:/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "COLUMNS": "200",
    }
    return subprocess.run(
        [*enter, str(python), *args], env=environment, capture_output=True, text=True, check=False
    )


def test_it_runs_unprivileged_from_read_only_files(image: Path) -> None:
    """`plimsoll version`, `plimsoll run --help`; and `plimsoll run` gets as far as looking for a cluster."""
    version = inside(image, "-m", "plimsoll", "version")
    assert (version.returncode, version.stdout.strip()) == (0, plimsoll.__version__), version.stderr
    told = inside(image, "-m", "plimsoll", "run", "--help")
    assert told.returncode == 0, told.stderr
    assert "--kubeconfig" in told.stdout

    started = inside(image, "-W", "error", "-m", "plimsoll", "run")

    assert started.returncode == 1
    assert "no usable configuration" in started.stderr
    assert "Traceback" not in started.stderr


def test_a_user_without_rights_may_not_write(image: Path) -> None:
    """The check of the check: the same user in the same root."""
    code = "import os, pathlib, plimsoll; print(os.getuid()); pathlib.Path(plimsoll.__file__).write_text('')"

    done = inside(image, "-c", code)

    assert done.stdout.strip() == "65532"
    assert "PermissionError" in done.stderr or "Read-only file system" in done.stderr


def test_it_holds_what_the_operator_loads_and_no_more(image: Path) -> None:
    """No shell, no package manager, no development cluster's libraries; less than 150 MB, unpacked.

    16 MB of them evaluate selectors of devices: the engine of the CEL library, and protobuf.
    """
    names = {path.name for path in image.rglob("*")}

    assert not names & {
        "sh",
        "bash",
        "dash",
        "busybox",
        "apt",
        "dpkg",
        "pip",
        "cryptography",
        "hypothesis",
    }
    packages = next(image.rglob("site-packages"))
    assert not (packages / "plimsoll/testing").exists()
    assert (packages / "highspy").is_dir()
    assert not (packages / "cel_expr_python/ext").exists()
    assert [path.name for path in image.rglob("python3*") if os.access(path, os.X_OK) and path.is_file()] == [
        f"python3.{sys.version_info.minor}"
    ]
    # An interpreter has 13 MB of machine code when stripped, as in images; this machine's may not be.
    own = [*image.rglob("libpython*"), *image.rglob("lib-dynload/*"), *image.rglob("bin/python3*")]
    files = {path for path in image.rglob("*") if path.is_file() and not path.is_symlink()} - set(own)
    assert sum(path.stat().st_size for path in files) < 150_000_000 - 13_000_000


def test_selectors_of_devices_are_evaluated_in_it(image: Path) -> None:
    """With the engine of the CEL library alone: its extensions are left out."""
    code = (
        "from plimsoll.devices.cel.device_view import DeviceView\n"
        "from plimsoll.devices.cel.selectors import selector\n"
        "compiled = selector('device.driver == \"gpu.example.com\"')\n"
        "print(compiled.error, compiled.matches(DeviceView('gpu.example.com', {}, {}, False)))"
    )

    done = inside(image, "-c", code)

    assert done.stdout.split() == ["True"], done.stderr


def test_the_dockerfile_passes_hadolint() -> None:
    """With the one exception that .hadolint.yaml gives its reason for."""
    done = subprocess.run(
        [tool("hadolint"), "Dockerfile"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout


def test_the_dockerfile_pins_its_base_and_ends_unprivileged() -> None:
    """A digest, hashes at each download, copies of what exists, a numeric user, no shell form."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for name in line.split()[:-1]
    }

    assert re.search(r"^ARG PYTHON=python:3\.\d+\.\d+-[a-z-]+@sha256:[0-9a-f]{64}$", DOCKERFILE, re.MULTILINE)
    for line in re.findall(r"^RUN (.+)$", DOCKERFILE, re.MULTILINE):
        assert "pip" not in json.loads(line) or {"--require-hashes", "--no-index"} & set(json.loads(line))
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", DOCKERFILE, re.MULTILINE)
    assert not re.search(r"^(RUN|CMD|ENTRYPOINT) (?!\[)", DOCKERFILE, re.MULTILINE)
    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name}" for name in copied} <= set(ignored)


def test_the_lock_files_agree() -> None:
    """The image has what was tested: each version of its locks is the development lock's."""
    pins = {}
    for name in ("", "-runtime", "-build"):
        text = (ROOT / f"requirements{name}.lock").read_text(encoding="utf-8")
        pins[name] = set(re.findall(r"^([a-z0-9-]+==[^ ;\\]+)", text, re.MULTILINE))

    assert pins["-runtime"] < pins[""]
    assert pins["-build"] < pins[""]
    assert not any(each.startswith(("cryptography", "hypothesis")) for each in pins["-runtime"])
