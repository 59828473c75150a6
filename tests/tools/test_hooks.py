"""The hooks of pre-commit: each runs a tool of .venv or a target of the Makefile; and the check of files."""

import re
from pathlib import Path

import pytest
import yaml

from well_formed import problem_of

ROOT = Path(__file__).parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]


def test_hooks_download_nothing() -> None:
    """All are local, and run what is installed."""
    assert [repository["repo"] for repository in HOOKS] == ["local"]
    assert {hook["language"] for hook in HOOKS[0]["hooks"]} == {"system"}


@pytest.mark.parametrize("entry", [hook["entry"].split() for hook in HOOKS[0]["hooks"]])
def test_a_hook_runs_what_exists(entry: list[str]) -> None:
    """A target of the Makefile, or a program of .venv and a file of ours."""
    program, *arguments = entry
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    if program == "make":
        assert set(arguments) <= set(targets)
    else:
        assert (ROOT / program).exists()
        assert all((ROOT / name).exists() for name in arguments if name.endswith(".py"))


@pytest.mark.parametrize(
    ("name", "text", "readable"),
    [
        pytest.param("a.yaml", "a: 1\n---\nb: [1]\n", True, id="yaml"),
        pytest.param("a.yaml", "a: [1\n", False, id="broken-yaml"),
        pytest.param("a.yaml", "a: 1\na: 2\n", False, id="doubled-key"),
        pytest.param("a.toml", "a = 1\n", True, id="toml"),
        pytest.param("a.toml", "a = 1\na = 2\n", False, id="broken-toml"),
    ],
)
def test_files_are_read(tmp_path: Path, name: str, text: str, readable: bool) -> None:
    """What cannot be read is named."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    assert (problem_of(path) is None) is readable
