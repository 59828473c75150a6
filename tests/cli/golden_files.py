"""Golden files: ``golden/COMMAND/CASE.FORMAT`` is what a command prints.

PLIMSOLL_WRITE_GOLDEN=1 writes them.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).with_name("golden")


def check(command: str, case: str, form: str, text: str) -> None:
    """Compare what a command has printed with its golden file.

    Args:
        command: Its words, separated by a dash: ``explain-pod``.
        case: The scene.
        form: ``table``, ``wide``, ``json``, ``yaml``, ``error``; ``text`` of a command that has no formats.
        text: What it has printed.
    """
    file = GOLDEN / command / f"{case}.{form}"
    assert "\x1b" not in text
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.is_file(), f"{file} is missing; PLIMSOLL_WRITE_GOLDEN=1 writes it"
    assert text == file.read_text(encoding="utf-8")
