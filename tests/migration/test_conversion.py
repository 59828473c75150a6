"""Old configurations, converted: the policies, and the report line by line, as in the files of ``cases``.

``PLIMSOLL_WRITE_GOLDEN=1`` writes what is expected; the inputs are written by hand.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from migration.checks import CHECKS, PLUGINS
from plimsoll.migration.conversion import ConvertedFiles, convert_documents
from plimsoll.migration.documents import read_documents
from plimsoll.migration.report import ReportLine

CASES = Path(__file__).parent / "cases"
KEEP = b"# --keep-behaviour\n"
NAMES = sorted(path.name.removesuffix(".input.yaml") for path in CASES.glob("*.input.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_converts_to_the_expected_policies_with_the_expected_report(name: str) -> None:
    """Every field of the file is in the report once, with its line; what is written is accepted."""
    content = (CASES / f"{name}.input.yaml").read_bytes()
    expected = CASES / f"{name}.expected.yaml"

    found = _shown(_converted(content))

    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        expected.write_text(yaml.safe_dump(found, sort_keys=False, width=1000), encoding="utf-8")
    assert found == yaml.safe_load(expected.read_text(encoding="utf-8"))


def _converted(content: bytes) -> ConvertedFiles:
    documents = read_documents("policy.yaml", content)
    return convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=content.startswith(KEEP))


def _shown(converted: ConvertedFiles) -> dict[str, Any]:
    names = {str(each["metadata"]["name"]) for each in converted.policies}
    return {
        "policies": [dict(each) for each in converted.policies],
        "report": [_line(each, names) for each in converted.report],
    }


def _line(line: ReportLine, names: set[str]) -> str:
    where = "" if set(line.policies) in (set(), names) else f" of {', '.join(line.policies)}"
    becomes = f" -> {line.target}{where}" if line.target else ""
    return f"{line.line or '-'} {line.change}: {line.source or '-'}{becomes}: {line.sentence}"
