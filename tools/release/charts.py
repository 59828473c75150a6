"""Packs the charts as archives and as OCI layouts, with what Artifact Hub shows of a release."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from release import oci_layout
from release.archives import packed

CHARTS = ("chart", "crds-chart")


def described_crds(folder: Path) -> list[dict[str, str]]:
    """Our kinds as the annotation ``artifacthub.io/crds`` has them."""
    found = []
    for file in sorted(folder.glob("*.yaml")):
        crd = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        (version,) = [each for each in crd["spec"]["versions"] if each["storage"]]
        schema = version["schema"]["openAPIV3Schema"]
        found.append(
            {
                "kind": crd["spec"]["names"]["kind"],
                "version": version["name"],
                "name": crd["metadata"]["name"],
                "displayName": crd["spec"]["names"]["kind"],
                "description": schema.get("description", crd["spec"]["names"]["kind"]),
            }
        )
    return found


def described(
    chart: dict[str, Any], crds: list[dict[str, str]], changes: list[dict[str, str]]
) -> dict[str, Any]:
    """A chart's Chart.yaml with the annotations of a release."""
    more = {
        "artifacthub.io/changes": yaml.dump(changes, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000),
        "artifacthub.io/crds": yaml.dump(crds, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000),
        "artifacthub.io/prerelease": str("-" in chart["version"]).lower(),
    }
    return {**chart, "annotations": {**chart.get("annotations", {}), **more}}


def pack(helm: str, root: Path, out: Path, changes: list[dict[str, str]], epoch_s: int) -> list[Path]:
    """Write both charts as ``out/NAME-VERSION.tgz`` and ``out/oci/NAME``; the archives.

    Args:
        helm: The program, which lints each chart as it is packed.
        root: The repository.
        out: A folder.
        changes: Of :func:`release.notes.artifacthub_changes`.
        epoch_s: The time of all files, in seconds since 1970.
    """
    crds, archives = described_crds(root / "crds"), []
    for source in CHARTS:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch, source)
            # ci has values for tests; links lead to definitions in the repository.
            shutil.copytree(
                root / "deploy" / source, folder, ignore=shutil.ignore_patterns("ci", "__pycache__")
            )
            file = folder / "Chart.yaml"
            chart = described(yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader), crds, changes)
            text = yaml.dump(chart, Dumper=yaml.CSafeDumper, sort_keys=False, width=1000)
            file.write_text(text, encoding="utf-8")
            subprocess.run([helm, "lint", "--quiet", str(folder)], check=True)  # noqa: S603 - of .tools
            content = packed(folder, chart["name"], epoch_s)
        archive = out / f"{chart['name']}-{chart['version']}.tgz"
        archive.write_bytes(content)
        archives.append(archive)
        oci_layout.write(
            out / "oci" / chart["name"],
            chart["version"],
            (oci_layout.CHART_CONFIG, chart),
            (oci_layout.CHART_CONTENT, content),
            {
                "org.opencontainers.image.title": chart["name"],
                "org.opencontainers.image.version": chart["version"],
                "org.opencontainers.image.description": chart["description"],
            },
        )
    return archives
