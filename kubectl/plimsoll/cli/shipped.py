"""Finds the example policies: in the wheel, or in a checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def examples() -> Path:
    """The folder of the example policies."""
    installed = _PACKAGE / "examples"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "examples"


def example_policies() -> dict[str, str]:
    """The example policies: content by file name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(examples().glob("*.yaml"))}
