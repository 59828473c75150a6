"""The contents of the image are listed, have accepted licences, and are audited in CI."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.tools import ROOT, tool

LOCK = ROOT / "requirements-runtime.lock"
#: Holds a file against CycloneDX's schema, all but the syntax of its addresses: the grammar for these takes
#: seconds to load, and purls are compared one by one.
JUDGE = """
import sys
sys.modules["rfc3987_syntax"] = None
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
print(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""
PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def licences() -> Any:
    """tools/licences.py."""
    spec = util.spec_from_file_location("licences", ROOT / "tools/licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_licence_is_one_that_we_take(licences: Any) -> None:
    """Of each package of the image that this platform needs."""
    found = {name: licence for name, _, licence in licences.licences(LOCK)}

    assert {name: each for name, each in found.items() if not licences.is_allowed(each)} == {}
    assert len(found) >= 30


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-only AND (Apache-2.0 OR MIT)", False),
        ("MIT AND (GPL-2.0-only OR GPL-3.0-only)", False),
    ],
)
def test_an_expression_is_judged_by_its_parts(licences: Any, expression: str, allowed: bool) -> None:
    """As SPDX combines them."""
    assert licences.is_allowed(expression) is allowed


def test_the_bill_of_materials_lists_the_lock(tmp_path: Path) -> None:
    """As make sbom writes it: each package with its version and hashes, as CycloneDX has it, nothing more."""
    (recipe,) = re.findall(
        r"^sbom:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    words = recipe.replace("\\\n", " ").split()
    arguments = words[words.index(".tools/bin/cyclonedx-py") + 1 :]
    arguments[-1] = str(tmp_path / "sbom.json")
    python = Path(tool("cyclonedx-py")).resolve().with_name("python")
    subprocess.run([tool("cyclonedx-py"), *arguments], cwd=ROOT, check=True, capture_output=True)
    judged = subprocess.run([python, "-c", JUDGE, arguments[-1]], capture_output=True, text=True, check=False)
    assert (judged.returncode, judged.stdout) == (0, "None\n"), judged.stdout + judged.stderr
    bill = json.loads((tmp_path / "sbom.json").read_text(encoding="utf-8"))

    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "plimsoll")
    listed = {(each["name"], each["version"]) for each in bill["components"]}
    assert listed == set(PINNED.findall(LOCK.read_text(encoding="utf-8")))
    for each in bill["components"]:
        assert each["purl"] == f"pkg:pypi/{each['name']}@{each['version']}"
        assert any(reference.get("hashes") for reference in each["externalReferences"])


def test_each_package_of_each_lock_has_hashes() -> None:
    """A package that changes under its name is not installed."""
    for lock in (*ROOT.glob("*.lock"), *(ROOT / "tools").glob("*.lock")):
        text = lock.read_text(encoding="utf-8")
        blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
        assert all("--hash=sha256:" in block for block in blocks if PINNED.match(block)), lock


def test_known_weaknesses_are_asked_for_where_the_answer_can_be_had() -> None:
    """A job of its own: advisories come out after a build was green."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/supply-chain.yml").read_text(encoding="utf-8"))
    commands = [step.get("run") for step in workflow["jobs"]["supply-chain"]["steps"]]

    assert "make audit" in commands
    assert "make sbom licences" in commands
    assert "schedule" in workflow[True]  # YAML reads "on" so


def test_the_command_prints_a_table() -> None:
    """Of what is in the image, and is content with it."""
    command = [sys.executable, str(ROOT / "tools/licences.py")]
    done = subprocess.run([*command, str(LOCK)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "pydantic" in done.stdout
