"""Release notes are a section of the changelog; archives and layouts of the same files are the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from release import krew, notes, oci_layout
from release.archives import packed

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Later.

## [1.2.0] - 2026-01-31

### Added

- `plimsoll plan` ([docs](docs/cli/plan.md)), see [k8s](https://kubernetes.io).

### Fixed

- A move.

## [1.1.0] - 2025-12-01
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    """Without its heading, and without the versions around it."""
    text = notes.section(CHANGELOG, "1.2.0")

    assert text.startswith("### Added\n")
    assert notes.entries(text)[1] == ("Fixed", "A move.")
    assert "Later" not in text


@pytest.mark.parametrize("version", ["1.3.0", "1.1.0", "1x2x0"])
def test_a_version_without_entries_is_not_released(version: str) -> None:
    """The message says what to do."""
    with pytest.raises(notes.NoSectionError, match="move those under Unreleased"):
        notes.section(CHANGELOG, version)


def test_an_unknown_kind_is_an_error() -> None:
    """A misspelt heading would lose its entries."""
    with pytest.raises(notes.NoSectionError, match="does not know Additions"):
        notes.section(CHANGELOG.replace("### Added", "### Additions"), "1.2.0")


def test_links_lead_to_the_files_of_the_tag() -> None:
    """Addresses elsewhere stay; without an address of the files their words are left."""
    text = notes.section(CHANGELOG, "1.2.0")

    assert "](tag/docs/cli/plan.md)" in notes.linked(text, "tag")
    assert "](https://kubernetes.io)" in notes.linked(text, "tag")
    assert notes.artifacthub_changes(text)[0] == {
        "kind": "added",
        "description": "`plimsoll plan` (docs), see [k8s](https://kubernetes.io).",
    }


def test_our_own_changelog_has_notes() -> None:
    """Of the next release."""
    text = notes.section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), "Unreleased")

    assert len(notes.entries(text)) > 3


def test_an_archive_depends_on_names_and_bytes_only(tmp_path: Path) -> None:
    """Neither on times nor on who packs; programs stay programs."""
    for name in ("one", "two"):
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin/run").write_text("#!/bin/sh\n")
        (tmp_path / name / "bin/run").chmod(0o755 if name == "one" else 0o700)
        os.utime(tmp_path / name / "bin/run", (1, len(name) * 1000))
        (tmp_path / name / "a").write_text("a")
    os.utime(tmp_path / "two/a", (5, 5))

    first, second = (packed(tmp_path / name, "chart", 7) for name in ("one", "two"))

    assert first == second
    with tarfile.open(fileobj=BytesIO(first)) as archive:
        assert [(each.name, each.mode, each.mtime) for each in archive] == [
            ("chart/a", 0o644, 7),
            ("chart/bin/run", 0o755, 7),
        ]


def test_a_layout_names_its_blobs_by_content(tmp_path: Path) -> None:
    """As the image specification has it."""
    digest = oci_layout.write(
        tmp_path, "1.2.0", ("a/config", {"name": "x"}), ("a/content", b"bytes"), {"k": "v"}
    )

    (entry,) = json.loads((tmp_path / "index.json").read_text())["manifests"]
    assert (entry["digest"], entry["annotations"]) == (digest, {"org.opencontainers.image.ref.name": "1.2.0"})
    manifest = json.loads((tmp_path / "blobs/sha256" / digest.removeprefix("sha256:")).read_text())
    for part in (manifest["config"], *manifest["layers"]):
        content = (tmp_path / "blobs/sha256" / part["digest"].removeprefix("sha256:")).read_bytes()
        assert hashlib.sha256(content).hexdigest() == part["digest"].removeprefix("sha256:")
        assert len(content) == part["size"]


def layout_of(folder: Path, *names: str) -> Path:
    """The layout of an image with one layer of empty files."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
    config = ("application/vnd.oci.image.config.v1+json", {"architecture": "arm64"})
    content = ("application/vnd.oci.image.layer.v1.tar+gzip", layer.getvalue())
    oci_layout.write(folder, "1.2.0", config, content, {})
    return folder


def test_an_image_is_unpacked_from_its_layout(tmp_path: Path) -> None:
    """All its files; a layer that takes some away, which none of ours does, is refused."""
    layout = layout_of(tmp_path / "layout", "usr/bin/python3.11", "etc/hosts")

    assert oci_layout.unpack(layout, tmp_path / "root") == "arm64"
    files = {
        str(each.relative_to(tmp_path / "root")) for each in (tmp_path / "root").rglob("*") if each.is_file()
    }
    assert files == {"usr/bin/python3.11", "etc/hosts"}
    with pytest.raises(ValueError, match=r"removes etc/\.wh\.hosts"):
        oci_layout.unpack(layout_of(tmp_path / "other", "etc/.wh.hosts"), tmp_path / "second")


def test_the_manifest_for_krew_has_the_platforms_that_were_built() -> None:
    """With checksums of their archives."""
    template = {
        "metadata": {"name": "plimsoll"},
        "spec": {
            "version": "v0",
            "platforms": [
                {
                    "selector": {"matchLabels": {"os": os_name, "arch": arch}},
                    "uri": "",
                    "sha256": "",
                    "bin": "b",
                }
                for os_name, arch in (("linux", "amd64"), ("darwin", "arm64"))
            ],
        },
    }

    made = krew.manifest(template, "1.2.0", "https://example.com/v1.2.0", {"linux-amd64": b"x"})

    (platform,) = made["spec"]["platforms"]
    assert made["spec"]["version"] == "v1.2.0"
    assert platform["uri"] == "https://example.com/v1.2.0/kubectl-plimsoll-linux-amd64.tar.gz"
    assert platform["sha256"] == hashlib.sha256(b"x").hexdigest()
