"""The walk-through of docs/writing-a-plugin.md shows the sample plugin as it is, and all of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "writing-a-plugin.md").read_text(encoding="utf-8")
SAMPLE = ROOT / "examples" / "sample-plugin"
PLUGIN = SAMPLE / "src" / "plimsoll_power_saving" / "__init__.py"


def blocks(language: str) -> list[str]:
    """The code blocks of a language, without their fences."""
    return re.findall(rf"^```{language}\n(.*?)\n```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def lines(text: str) -> list[str]:
    """What is written, blank lines apart."""
    return [line for line in text.splitlines() if line.strip()]


def test_every_block_is_a_part_of_a_file() -> None:
    """What a reader copies is what the tests run."""
    files = [
        path.read_text(encoding="utf-8")
        for path in SAMPLE.rglob("*")
        if path.suffix in (".py", ".toml", ".yaml")
    ]

    for language in ("py", "toml", "yaml"):
        found = blocks(language)
        assert found
        assert not [block for block in found if not any(block in content for content in files)]


def test_the_whole_plugin_is_shown() -> None:
    """No line that is needed is left to guess."""
    shown = [line for block in blocks("py") for line in lines(block)]

    assert not [line for line in lines(PLUGIN.read_text(encoding="utf-8")) if line not in shown]


def test_the_samples_tests_pass_outside_of_this_checkout(tmp_path: Path) -> None:
    """With pytest alone: what else this checkout has installed into it is no part of plimsoll-testing."""
    shutil.copytree(SAMPLE, tmp_path / "sample")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "src"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "not Conformance",
        "tests",
    ]

    done = subprocess.run(
        command, cwd=tmp_path / "sample", env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout[-2000:]
    assert "passed" in done.stdout
