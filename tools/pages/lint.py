"""Writes the rules of docs/cli/lint.md from their table.

``make docs`` runs ``python -m pages.lint docs/cli/lint.md``; a test fails when the page lags behind.
"""

import inspect
import sys
from pathlib import Path

from plimsoll.inspection.lint.rules import RULES

#: Below this line of the page everything is written.
BEGIN = "## Rules\n"

HEAD = """
Written by `make docs` from the table of rules in `kubectl/plimsoll/inspection/lint/rules.py`: change that.

| Rule | Severity | What is found |
| --- | --- | --- |
"""


def page(present: str) -> str:
    """The page in Markdown, with what it has before its rules at present."""
    rows = [f"| [{rule.id}](#{rule.id}) | {rule.severity} | {rule.summary} |" for rule in RULES]
    sections = []
    for rule in RULES:
        detail = " ".join((inspect.getdoc(rule.check) or "").split())
        needs = f"\n\nNeeds: {', '.join(rule.needs)}." if rule.needs else ""
        sections.append(f"### {rule.id}\n\n{detail}\n\n{rule.remedy}{needs}\n")
    return present.partition(BEGIN)[0] + BEGIN + HEAD + "\n".join(rows) + "\n\n" + "\n".join(sections)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
