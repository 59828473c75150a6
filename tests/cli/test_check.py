"""``plimsoll check`` prints its golden files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli import golden_files
from cli.check_scene import Installed
from cli.commands import say
from cli.refusing_server import kubeconfig_of, refusing_server
from plimsoll.version import __version__

#: In place of what differs from run to run, or from version to version.
SHOWN = "https://cluster.example:6443"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The server."""
    with refusing_server(Installed) as one:
        yield one


def printed(text: str, address: str) -> str:
    """Without the address, and with a version that stays."""
    return text.replace(address, SHOWN).replace(__version__, "9.9.9")


@pytest.mark.parametrize(
    ("case", "code", "form"),
    [
        *(("installed", 1, form) for form in ("table", "wide", "json", "yaml")),
        ("bare", 1, "table"),
        ("forbidden", 0, "table"),
        ("operator", 1, "table"),
    ],
)
def test_the_findings(url: str, tmp_path: Path, case: str, code: int, form: str) -> None:
    """Something wrong in each area; an empty cluster; a caller without rights; the operator."""
    file = kubeconfig_of(tmp_path / "config", f"{url}/{case}")

    said = say("check", "--kubeconfig", str(file), "-o", form)

    assert (said.code, said.err) == (code, "")
    golden_files.check("check", case, form, printed(said.out, f"{url}/{case}"))


def test_expired_credentials(url: str, tmp_path: Path) -> None:
    """One line, and no table."""
    file = kubeconfig_of(tmp_path / "config", f"{url}/unauthorized")

    said = say("check", "--kubeconfig", str(file))

    assert (said.code, said.out) == (1, "")
    golden_files.check("check", "unauthorized", "error", printed(said.err, f"{url}/unauthorized"))


def test_the_page_shows_what_is_printed() -> None:
    """docs/cli/check.md has the golden table."""
    page = (Path(__file__).parents[2] / "docs" / "cli" / "check.md").read_text(encoding="utf-8")
    golden = (golden_files.GOLDEN / "check" / "installed.table").read_text(encoding="utf-8")

    assert f"```text\n{golden}```" in page
