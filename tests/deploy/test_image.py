"""The image, as far as it goes without a container engine: its steps are carried out, its files are a root.

Each RUN line of the Dockerfile is executed as written, in an environment as empty as that of the first stage,
with folders of the test in place of the stage's. What pip would fetch for a lock file is linked from the
environment of the tests, which has the same versions. What it puts together is entered with chroot, as an
unprivileged user, and not writable.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from pip._internal.commands import create_command

from built_once import Parts, built_once, sources, tools, write
from deploy.installation import here, link, locked, required
from deploy.tools import ROOT, tool
from plimsoll.version import __version__

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
#: The stage's folder of sources, and where its programs are found.
STAGE, PATH = Path("src"), "/usr/sbin:/usr/bin:/bin"
#: Folders of the stage, of which the image has neither.
PASSING = ("installed", "src", "venv")
#: What the system contributes (deploy/image/assemble.py).
SYSTEM = ("etc/ld.so.cache", "etc/nsswitch.conf", "etc/ssl/certs/ca-certificates.crt")

pytestmark = [
    pytest.mark.slow,  # assembles the image's files
]


@pytest.fixture(scope="module")
def image() -> Path:
    """The root folder that the Dockerfile's second stage copies."""
    return built_once("image", parts(), _run_the_first_stage) / "assembled"


def parts() -> Parts:
    """All that the first stage is made of: what it copies, where it has it, and this machine."""
    found = sources(ROOT, ["Dockerfile", "tests/built_once.py", "tests/deploy"])
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE):
        *names, target = line.split()
        for name in names:
            path = STAGE / target / (Path(name).name if target.endswith("/") else "")
            for file, content in sources(ROOT / name, ["."]).items():
                found[str(path / file)] = content
    packages = Path(sysconfig.get_path("purelib"))
    programs = [Path(one) for name in ("cc", "strip", "ldd") if (one := shutil.which(name, path=PATH))]
    system = [path for name in SYSTEM if (path := Path("/", name)).exists()]
    return {**found, **tools(Path(sys.executable), packages, *programs, *system)}


def _run_the_first_stage(folder: Path) -> None:
    venv.create(folder / "venv", symlinks=True)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    # The pip that runs the tests, for that environment: an own one would have to be installed and compiled.
    pip = folder / "venv/bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {folder}/venv/bin/python "$@"\n')
    pip.chmod(0o755)
    source = folder / STAGE
    write({name: content for name, content in parts().items() if Path(name).is_relative_to(STAGE)}, folder)
    # A compiler is on this machine, or the wheel is pure: apt-get is not run.
    for line in re.findall(r"^RUN (?!..apt-get)(.+)$", DOCKERFILE, re.MULTILINE):
        program, *args = (
            re.sub(r"(^|=)/(installed|assembled)$", rf"\1{folder}/\2", part) for part in json.loads(line)
        )
        if program == "pip" and (asked := create_command("install").parse_args(args[1:])[0]).requirements:
            for lock in asked.requirements:
                link(map(here, locked(source / lock)), Path(asked.target_dir or packages))
            continue
        done = subprocess.run(
            [f"{folder}/venv/bin/{program}", *args],
            cwd=source,
            env={"PATH": f"{folder}/venv/bin:{PATH}", "PIP_CONFIG_FILE": os.devnull},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    for name in PASSING:
        shutil.rmtree(folder / name)
    subprocess.run(["chmod", "-R", "a-w,a+rX", str(folder)], check=True)


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
    assert (version.returncode, version.stdout.strip()) == (0, __version__), version.stderr
    told = inside(image, "-m", "plimsoll", "run", "--help")
    assert told.returncode == 0, told.stderr
    assert "--kubeconfig" in told.stdout

    started = inside(image, "-W", "error", "-m", "plimsoll", "run")

    assert started.returncode == 1
    assert "no usable configuration" in started.stderr
    assert "Traceback" not in started.stderr


def test_a_user_without_rights_may_not_write(image: Path) -> None:
    """The check of the check: the same user in the same root."""
    code = (
        "import os, pathlib, plimsoll.version as own; print(os.getuid());"
        " pathlib.Path(own.__file__).write_text('')"
    )

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
        "from dra_cel import DeviceView, selector\n"
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
        pins[name] = set(
            re.findall(r"^([a-z0-9-]+==[^ ;\\]+)[^\\]*((?:\\\n *--hash=\S+ *)+)", text, re.MULTILINE)
        )

    assert pins["-runtime"] < pins[""]
    assert pins["-build"] < pins[""]
    assert not any(each.startswith(("cryptography", "hypothesis")) for each, _ in pins["-runtime"])


@pytest.mark.parametrize("name", ["-runtime", "-build", ""])
def test_a_lock_file_names_all_that_its_packages_require(name: str) -> None:
    """As pip demands of files with hashes."""
    found = [here(each) for each in locked(ROOT / f"requirements{name}.lock")]

    assert {each.name for each in required(found)} <= {each.name for each in found}


def a_wheel(folder: Path, name: str, requires: str = "", **files: str) -> Path:
    """A wheel of a package without a build: its modules, what it requires, and its entry points."""
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": tag}
    file = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path, text in contents.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"]))
    return file


def test_a_plugin_with_dependencies_of_its_own_is_added_as_the_sample_does(
    image: Path, tmp_path: Path
) -> None:
    """Its Dockerfile's pip fetches what the image lacks, and nothing that the image has."""
    recipe = (ROOT / "examples/sample-plugin/Dockerfile").read_text(encoding="utf-8")
    (line,) = re.findall(r"^RUN (.+)$", recipe, re.MULTILINE)
    (environment,) = re.findall(r"^ENV (.+)$", recipe, re.MULTILINE)
    packages = next(image.rglob("site-packages"))
    plugin = (
        "from rackmath import NAME\nfrom plimsoll.framework import NodeFilter\n\n"
        "class Mine(NodeFilter):\n    name = NAME\n"
    )
    mine = a_wheel(
        tmp_path,
        "mine",
        "Requires-Dist: rackmath\nRequires-Dist: aiohttp\nRequires-Dist: plimsoll-core\n",
        **{
            "mine.py": plugin,
            "mine-1.0.dist-info/entry_points.txt": "[plimsoll.plugins]\nMine = mine:Mine\n",
        },
    )
    a_wheel(tmp_path, "rackmath", **{"rackmath.py": "NAME = 'Mine'\n"})
    venv.create(tmp_path / "venv", symlinks=True)
    places: dict[str, str] = {
        "/have": str(packages),
        "--prefix=/mine": f"--prefix={tmp_path}/mine",
        "/plugin": str(mine),
    }
    _, *args = (places.get(part, part) for part in json.loads(line))
    given: dict[str, str] = dict(each.split("=", 1) for each in environment.split())

    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(tmp_path / "venv/bin/python"), *args],
        env={
            "PATH": PATH,
            **{name: places.get(value, value) for name, value in given.items()},
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    added = next((tmp_path / "mine").rglob("site-packages"))
    names = {path.name for path in added.iterdir()} - {"__pycache__"}
    assert names == {"mine.py", "rackmath.py", "mine-1.0.dist-info", "rackmath-1.0.dist-info"}
    with_mine = tmp_path / "image"
    subprocess.run(["cp", "-al", str(image), str(with_mine)], check=True)
    inner = with_mine / packages.relative_to(image)
    inner.chmod(0o755)
    shutil.copytree(added, inner, dirs_exist_ok=True)
    code = (
        "from plimsoll.policies.extensions import installed, PLUGINS\n"
        "print([each.load() for each in installed(PLUGINS)])"
    )
    told = inside(with_mine, "-c", code)
    assert "<class 'mine.Mine'>" in told.stdout, told.stderr
