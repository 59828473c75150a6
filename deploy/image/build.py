"""Builds the image where no registry is reached: the Dockerfile, on a base that is made of Debian's packages.

    python deploy/image/build.py LAYOUT [CONTENT] [ARCHITECTURE]

LAYOUT becomes a folder in the format of the OCI image layout, with one image named by its version. CONTENT
is what it holds, by default the operator with all extras. ARCHITECTURE is Debian's name, amd64 or arm64, by
default this machine's; for another one, Debian's qemu-user-static must run its programs. Runs as root on
Debian or Ubuntu with mmdebstrap and buildah, and needs neither a container engine nor namespaces. This
machine's pip fetches the wheels, however it is set up; in the build, pip compares them with the lock files
and has no network.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUITE, PYTHON = "bookworm", (3, 11)
#: What the Dockerfile's first stage has of the base that it names: Python, pip, root certificates.
PACKAGES = ("python3-minimal", "libpython3-stdlib", "python3-pip", "python-is-python3", "ca-certificates")
#: Its compiler, which its own call of apt-get then finds installed.
COMPILER = ("gcc", "libc6-dev")
BASE, BUILT = "localhost/plimsoll-base", "localhost/plimsoll"
PIP = "[global]\nno-index = true\nfind-links = /wheels\n"
TOOLS = ("mmdebstrap", "buildah")
#: What runs programs of another architecture.
EMULATION = "qemu-user-static binfmt-support arch-test"
#: What the kernel calls an architecture, by Debian's name.
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
#: The C libraries whose wheels run on Debian's.
GLIBC = ("2014", "_2_17", "_2_26", "_2_27", "_2_28", "_2_31", "_2_34")


def run(*command: str | Path, **environment: str) -> str:
    """Run a program that must succeed; what it prints."""
    given = {**os.environ, **environment}
    done = subprocess.run(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - ours
    return done.stdout.strip()


def fetch_wheels(folder: Path, python: str, machine: str) -> None:
    """Fetch what the two locks name, for a minor version of Python and a machine."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:"]
    command += ["--implementation=cp", f"--python-version={python}", f"--dest={folder}"]
    command += [f"--platform=manylinux{version}_{machine}" for version in GLIBC]
    run(*command, "--requirement=requirements-build.lock", "--requirement=requirements-runtime.lock")


def build(layout: Path, content: str, architecture: str, scratch: Path) -> None:
    """Make the base, the wheels, the image, and the layout."""
    storage = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs", "TMPDIR": str(scratch)}
    buildah = ("buildah", f"--root={scratch / 'storage'}", f"--runroot={scratch / 'run'}")
    base = run(*buildah, "from", "scratch", **storage)
    folder = Path(run(*buildah, "mount", base, **storage))
    included = ",".join((*PACKAGES, *COMPILER))
    debian = ("mmdebstrap", "--quiet", "--variant=apt", f"--architectures={architecture}")
    run(*debian, f"--include={included}", SUITE, folder, **storage)
    (python,) = (
        re.fullmatch(r"python(3\.\d+)", path.name)[1] for path in folder.glob("usr/bin/python3.[0-9]*")
    )
    run(*buildah, "config", f"--arch={architecture}", base, **storage)
    run(*buildah, "commit", "--quiet", "--rm", base, BASE, **storage)

    wheels, config = scratch / "wheels", scratch / "pip.conf"
    fetch_wheels(wheels, python, MACHINES[architecture])
    config.write_text(PIP, encoding="utf-8")
    command = [*buildah, "bud", "--quiet", "--isolation=chroot", f"--tag={BUILT}", f"--arch={architecture}"]
    command += [f"--timestamp={os.environ.get('SOURCE_DATE_EPOCH', '0')}"]
    command += [f"--volume={wheels}:/wheels:ro", f"--volume={config}:/etc/pip.conf:ro"]
    run(*command, f"--build-arg=PYTHON={BASE}", f"--build-arg=CONTENT={content}", str(ROOT), **storage)
    (version,) = re.findall(r'__version__ = "(.+)"', (ROOT / "core/plimsoll/version.py").read_text())
    shutil.rmtree(layout, ignore_errors=True)
    layout.parent.mkdir(parents=True, exist_ok=True)
    run(*buildah, "push", "--quiet", BUILT, f"oci:{layout}:{version}", **storage)


def main(layout: str, content: str = "plimsoll[optimal,devices]", architecture: str = "") -> str | None:
    """Build; or say what is missing."""
    ours = {machine: name for name, machine in MACHINES.items()}.get(platform.machine(), "")
    architecture = architecture or ours
    if architecture not in MACHINES:
        return (
            f"the image is built for {' and '.join(MACHINES)}, not for {architecture or platform.machine()}"
        )
    emulator = Path("/proc/sys/fs/binfmt_misc", f"qemu-{MACHINES[architecture]}")
    if architecture != ours and not emulator.exists():
        return f"nothing runs {architecture} here: apt-get install {EMULATION}"
    if sys.version_info[:2] != PYTHON:  # pip judges the conditions in a lock by the interpreter that runs it
        return f"run it with Python {PYTHON[0]}.{PYTHON[1]}, which Debian {SUITE} has"
    if missing := [name for name in TOOLS if shutil.which(name) is None]:
        return f"{' and '.join(missing)} not found: apt-get install {' '.join(TOOLS)}"
    memory = Path("/dev/shm")  # noqa: S108 - a third of the time, where packages are unpacked in memory
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 6 << 30
    with tempfile.TemporaryDirectory(dir=memory if roomy else None) as scratch:
        build(Path(layout).absolute(), content, architecture, Path(scratch))
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
