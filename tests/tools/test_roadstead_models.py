"""The models that roadstead ships are those of the installed client."""

from __future__ import annotations

import roadstead_models


def test_the_models_are_current() -> None:
    """`PYTHONPATH=tools python -m roadstead_models` writes them."""
    assert roadstead_models.FILE.read_text(encoding="utf-8") == roadstead_models.text()
