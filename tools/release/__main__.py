"""Makes what a release publishes: ``python -m release VERSION FOLDER [options]``.

The wheels, the source archive, both charts as archives and OCI layouts, the definitions in one file, the bill
of materials, release notes and checksums. Times are those of the last commit, so that two runs give the same
bytes. ``--dry-run`` takes the entries under Unreleased as the notes, and makes for this architecture what the
workflow makes by docker: both images as OCI layouts, the archive for krew and its manifest.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import yaml

from release import charts, krew, notes, oci_layout, wheels

ROOT = Path(__file__).parents[2]
#: What each image holds, by the end of its tag.
IMAGES = {"": "plimsoll[optimal,devices]", "-minimal": "plimsoll"}
#: Where the archives of a dry run would be; nothing is there.
NOWHERE = "https://example.com/plimsoll"


def stated_versions() -> dict[str, str]:
    """What each file that states the version says."""
    constant = "core/plimsoll/version.py"
    (stated,) = re.findall(r'__version__ = "(.+)"', (ROOT / constant).read_text())
    said = {constant: stated}
    for project in (each for each in wheels.PROJECTS if each != "devcluster"):
        file = ROOT / project / "pyproject.toml"
        said[str(file.relative_to(ROOT))] = tomllib.loads(file.read_text())["project"]["version"]
    for chart in charts.CHARTS:
        file = ROOT / "deploy" / chart / "Chart.yaml"
        said[str(file.relative_to(ROOT))] = yaml.safe_load(file.read_text(encoding="utf-8"))["version"]
    return said


def run(*command: str) -> str:
    """What a program says that must succeed."""
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - commands of ours
    return done.stdout


def epoch() -> int:
    """SOURCE_DATE_EPOCH, or the time of the last commit."""
    if named := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(named)
    return int(run("git", "log", "-1", "--format=%ct"))


def program(name: str) -> str:
    """Of ``make tools``, or on the PATH."""
    found = shutil.which(name, path=ROOT / ".tools/bin") or shutil.which(name)
    if found is None:
        sys.exit(f"{name} is not installed: make tools")
    return found


def write_definitions(out: Path) -> None:
    """All custom resource definitions in one file, in the order of their names."""
    parts = [file.read_text(encoding="utf-8").strip() for file in sorted((ROOT / "crds").glob("*.yaml"))]
    (out / "crds.yaml").write_text("\n---\n".join(parts) + "\n", encoding="utf-8")


def build_image(layout: Path, content: str) -> None:
    """Build an image of this machine's architecture as a layout, without a registry; or end."""
    command = [sys.executable, "deploy/image/build.py", str(layout), content]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:  # noqa: S603 - ours
        sys.exit("no image is built; --dry-run --without-image makes everything else")


def write_krew(out: Path, image: Path, version: str) -> None:
    """The archive for krew of the image in a layout, and the manifest that names it."""
    with tempfile.TemporaryDirectory() as root:
        architecture = oci_layout.unpack(image, Path(root))
        content = krew.archived(Path(root), epoch())
    (out / f"{krew.PREFIX}-linux-{architecture}.tar.gz").write_bytes(content)
    krew.write_manifest(out, version, f"{NOWHERE}/v{version}")


def write_checksums(out: Path) -> None:
    """SHA256SUMS of all files, as ``sha256sum --check`` reads it."""
    files = sorted(each for each in out.rglob("*") if each.is_file() and each.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.relative_to(out)}\n" for each in files]
    (out / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def main() -> None:
    """Make it, or end with a sentence."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only-wheels", action="store_true")
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument(
        "--without-image", action="store_true", help="of a dry run: no images, nothing for krew"
    )
    parser.add_argument(
        "--files", default="", help="where the repository's files are seen, such as .../blob/v1.0.0"
    )
    given = parser.parse_args()
    wrong = {name: said for name, said in stated_versions().items() if said != given.version}
    if wrong:
        sys.exit(f"{given.version} is not what is stated: {wrong}")
    section = ""
    if not given.only_wheels:
        try:
            text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
            section = notes.section(text, "Unreleased" if given.dry_run else given.version)
        except notes.NoSectionError as exc:
            sys.exit(str(exc))
        helm = program("helm")
    out = given.folder.absolute()
    is_whole = given.dry_run and not (given.only_wheels or given.without_image)
    with tempfile.TemporaryDirectory() as scratch:
        images = Path(scratch, "images")
        if is_whole:  # first: what is missing for it is found before anything goes
            for variant, content in IMAGES.items():
                build_image(images / f"{given.version}{variant}", content)
            build_image(Path(scratch, "kubectl"), krew.CONTENT)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if is_whole:
            shutil.move(images, out / "images")
            write_krew(out, Path(scratch, "kubectl"), given.version)
    wheels.build(ROOT, out, epoch())
    if not given.only_wheels:
        (out / "notes.md").write_text(notes.linked(section, given.files), encoding="utf-8")
        charts.pack(helm, ROOT, out, notes.artifacthub_changes(section), epoch())
        write_definitions(out)
        # The programs are there, whatever make makes of their times.
        os.environ["SOURCE_DATE_EPOCH"] = str(epoch())
        run("make", "--old-file=.tools/.installed", "sbom", f"SBOM={out}/plimsoll.cdx.json")
    write_checksums(out)


if __name__ == "__main__":
    main()
