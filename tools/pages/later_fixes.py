"""Writes the table of docs/later-fixes.md from the list of fixes.

``make docs`` runs ``python -m pages.later_fixes docs/later-fixes.md``; a test fails when the page lags.
"""

import sys
from pathlib import Path

from recordings.later_fixes import LATER_FIXES

#: Below this line of the page everything is written.
BEGIN = "## By version\n"

HEAD = """
Written by `make docs` from `tools/recordings/later_fixes.py`: change that.

| Kubernetes | Where | What is decided | Origin | Cases | Recordings of 1.36.2 that differ |
| --- | --- | --- | --- | --- | --- |
"""


def page(present: str) -> str:
    """The page in Markdown, with what it has before its table at present."""
    rows = [
        " | ".join(
            (
                f"| {fix.version}",
                fix.plugin,
                fix.about,
                ", ".join(f"#{number}" for number in fix.origin),
                ", ".join(f"`{case}`" for case in fix.field_cases),
                f"{', '.join(f'`{case}`' for case in fix.recordings) or 'none'} |",
            )
        )
        for fix in LATER_FIXES
    ]
    return present.partition(BEGIN)[0] + BEGIN + HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
