"""Screenshots and the recording are small, pages show them, and their sources still exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import yaml

from pictures import screenshots
from pictures.recorder import FRAMES, HEIGHT, played
from pictures.terminal import Terminal
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy

ROOT = Path(__file__).parents[2]
TAKEN = ("demo.svg", "live-page.webp", "report.webp")


def test_they_are_few_and_small_and_a_page_shows_each() -> None:
    sizes = {name: (ROOT / "docs/pictures" / name).stat().st_size for name in TAKEN}
    text = "".join(
        path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    )

    assert max(sizes.values()) < 150_000
    assert sum(sizes.values()) < 600_000
    assert all(f"pictures/{name})" in text for name in TAKEN)


def test_what_they_are_taken_of_exists() -> None:
    """The demo, the template and the fields of the live page, and a scene that the operator accepts."""
    assert (ROOT / "examples/demo/__main__.py").exists()
    page = (ROOT / "operator/plimsoll/app/memory/page/live.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in ("token", "ask"))
    documents = list(yaml.safe_load_all(screenshots.SCENE.read_text(encoding="utf-8")))
    policies = [each for each in documents if each["kind"] == "SchedulingPolicy"]
    assert [SchedulingPolicy.model_validate(each).metadata.name for each in policies] == [
        "scheduler",
        "rebalance",
    ]


def test_a_recording_names_no_path_and_plays_all_its_frames() -> None:
    text = (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8")

    assert text.count("<g class") <= FRAMES + 1
    assert text.count("@keyframes") == text.count("<g class")
    assert "/tmp/" not in text
    assert "\N{REPLACEMENT CHARACTER}" not in text
    assert "prefers-reduced-motion" in text


def test_the_recording_ends_as_the_demo_does_now() -> None:
    """What one of the demo's stories checks at its end is on the screen, word for word."""
    source = ast.parse((ROOT / "examples/demo/__main__.py").read_text(encoding="utf-8"))
    checks = [
        [str(key.value) for key in each.value.keys if isinstance(key, ast.Constant)]
        for each in ast.walk(source)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Dict)
        and [target.id for target in each.targets if isinstance(target, ast.Name)] == ["checks"]
    ]
    drawn = re.sub(r"<[^>]+>", "", (ROOT / "docs/pictures/demo.svg").read_text(encoding="utf-8"))

    assert len(checks) == 2, "of the demo, and of the one with devices"
    assert any(all(each in drawn for each in story) for story in checks), "make pictures records it again"


def test_a_terminal_keeps_what_is_on_its_screen() -> None:
    """Lines are overwritten, erased and coloured, as a progress bar does it."""
    terminal = Terminal()
    terminal.write("one\ntwo\r\n\x1b[1Atw\x1b[1mO\x1b[0m!\x1b[K\n")
    terminal.write("gone\r\x1b[2K<b>")

    lines = ["".join(text for text, _ in row) for row in terminal.screen(HEIGHT)]
    assert lines == ["one", "twO!", "<b>"]
    assert terminal.rows[1][2] == ("O", "b")
    drawing = played([(0.0, terminal.screen(HEIGHT)), (1.0, terminal.screen(HEIGHT))])
    assert "&lt;b&gt;" in drawing
    assert '<tspan class="b">O</tspan>' in drawing
