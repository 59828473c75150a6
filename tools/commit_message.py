"""Checks a commit message: ``python tools/commit_message.py FILE``, as pre-commit calls it.

The subject has at most 72 characters and no period at its end, an empty line follows, and the reason is in
the body.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

#: Characters of a subject.
LONGEST = 72

#: What git writes itself.
_BY_GIT = ("Merge ", "Revert ", "fixup! ", "squash! ")


def problems_of(message: str) -> Iterator[str]:
    """What is wrong with a message; comments of git are left out."""
    lines = [
        line
        for line in message.split("\n# ------------------------ >8", maxsplit=1)[0].splitlines()
        if not line.startswith("#")
    ]
    while lines and not lines[0].strip():
        del lines[0]
    if not lines:
        yield "the message is empty"
        return
    subject = lines[0]
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters, at most {LONGEST} are allowed"
    if subject.endswith("."):
        yield "the subject ends with a period"
    if not subject[:1].isupper():
        yield "the subject begins with a capital letter"
    if lines[1:2] and lines[1].strip():
        yield "the line after the subject is not empty"
    if not subject.startswith(_BY_GIT) and not any(line.strip() for line in lines[1:]):
        yield "the body is empty: give the reason"


def main() -> int:
    """Print what is wrong; 1 when something is."""
    problems = list(problems_of(Path(sys.argv[1]).read_text(encoding="utf-8")))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
