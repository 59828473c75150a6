"""Every target of the Makefile is declared phony."""

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()


def test_targets_are_phony() -> None:
    """`make benchmarks` did nothing once, for there is a folder of that name."""
    targets = set(re.findall(r"^([a-z][a-z0-9-]*):", MAKEFILE, re.MULTILINE))
    declared = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert declared is not None

    assert "test" in targets
    assert set(declared[1].split()) == targets
