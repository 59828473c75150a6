"""Writes one artefact as an OCI image layout, a folder that oras, skopeo and others push, and unpacks one.

Source: OCI image specification 1.1, image-layout.md and manifest.md.
"""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

#: Of a Helm chart: what helm itself pushes.
CHART_CONFIG = "application/vnd.cncf.helm.config.v1+json"
CHART_CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def encoded(value: Any) -> bytes:
    """JSON, the same for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def stored(layout: Path, media_type: str, content: bytes) -> dict[str, Any]:
    """Write a blob; its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    blob = layout / "blobs/sha256" / digest
    blob.parent.mkdir(parents=True, exist_ok=True)
    blob.write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def write(
    layout: Path, tag: str, config: tuple[str, Any], content: tuple[str, bytes], annotations: dict[str, str]
) -> str:
    """Write a layout with one manifest; its digest.

    Args:
        layout: The folder, which is made.
        tag: The manifest's name in it.
        config: Media type and value.
        content: Media type and bytes of the only layer.
        annotations: Of the manifest.
    """
    manifest = stored(
        layout,
        MANIFEST,
        encoded(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": stored(layout, config[0], encoded(config[1])),
                "layers": [stored(layout, *content)],
                "annotations": annotations,
            }
        ),
    )
    named = {**manifest, "annotations": {"org.opencontainers.image.ref.name": tag}}
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
    (layout / "index.json").write_bytes(encoded(index))
    (layout / "oci-layout").write_bytes(encoded({"imageLayoutVersion": "1.0.0"}))
    return str(manifest["digest"])


def read(layout: Path, digest: str) -> Any:
    """A blob's JSON, by its digest."""
    return json.loads((layout / "blobs" / digest.replace(":", "/")).read_bytes())


def unpack(layout: Path, root: Path) -> str:
    """Unpack the only image of a layout into a folder; its architecture, such as ``amd64``.

    Raises:
        ValueError: A layer takes files away, which no layer of ours does.
    """
    (named,) = json.loads((layout / "index.json").read_bytes())["manifests"]
    manifest = read(layout, named["digest"])
    for layer in manifest["layers"]:
        with tarfile.open(layout / "blobs" / layer["digest"].replace(":", "/")) as archive:
            if removed := [each for each in archive.getnames() if Path(each).name.startswith(".wh.")]:
                raise ValueError(f"{layout}: a layer removes {removed[0]}")
            archive.extractall(root, filter="tar")
    return str(read(layout, manifest["config"]["digest"])["architecture"])
