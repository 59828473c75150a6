"""A soak's report: tables between the marks of a page, and small pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from soak.diary import CLUSTER, HAPPENINGS, OF_CLUSTER, PROCESSES, Diary
from soak.pictures import PICTURES, drawn
from soak.table import BEGIN, END, written
from soak.verdict import LOAD, REST_AFTER, Soaked


@pytest.fixture
def kept(tmp_path: Path) -> Soaked:
    """What a diary wrote of two lives and one fail-over."""
    diary = Diary(tmp_path / "kept")
    for number in range(60):
        at_s, life = number * 10.0, 1 + number // 30
        phase = LOAD if number < 57 else REST_AFTER
        figures = {"rss_mib": 150 + number % 3, "files": 60, "threads": 8, "tasks": 90, "cpu_share": 0.05}
        speeds = {"pod_events_per_s": 50.0, "requests_per_s": 20.0, "schedule_p50_s": 0.03}
        row = {"at_s": at_s, "name": "replica-a", "life": life, "leads": 1, "phase": phase}
        diary.write(PROCESSES, {**row, **figures, **speeds, "schedule_p99_s": 0.2})
        diary.write(CLUSTER, {**dict.fromkeys(OF_CLUSTER, 1), "at_s": at_s, "phase": phase})
    diary.write(HAPPENINGS, {"at_s": 1, "kind": "lease", "text": "taken by a 9.0 s after its last renewal"})
    diary.write(HAPPENINGS, {"at_s": 2, "kind": "fail-over", "text": "replica-a, life 1, killed at 300 s"})
    diary.write(HAPPENINGS, {"at_s": 3, "kind": "lease", "text": "taken by b 16.2 s after its last renewal"})
    diary.close()
    return Soaked.of(tmp_path / "kept")


def test_the_page_has_the_latest_soak_only(kept: Soaked, tmp_path: Path) -> None:
    """What stood between the marks is gone, the rest of the page stays."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        written(kept, "Measured here.", page, "pictures")
    lines = page.read_text().splitlines()

    assert lines[:4] == ["before", BEGIN, "", "Measured here."]
    assert lines[-2:] == [END, "after"]
    assert "old" not in lines
    rows = [line for line in lines if line.startswith("| replica-a, life")]
    assert [row.split(" | ")[0] for row in rows] == [
        "| replica-a, life 1, leader",
        "| replica-a, life 2, leader",
    ]
    assert rows[0].endswith("| 60 to 60 | 8 to 8 | 90 to 90 | 5 |")
    said = "- 1 fail-overs (1 killed, 0 terminated, 0 paused); a new leader at most 16.2 s after the last"
    assert f"{said} renewal" in lines
    assert "Verdict: flat." in lines


def test_pictures_are_small_and_complete(kept: Soaked, tmp_path: Path) -> None:
    """One file each, without scripts."""
    drawn(kept, tmp_path / "pictures")
    made = sorted((tmp_path / "pictures").iterdir())

    assert [each.stem for each in made] == sorted(each.name for each in PICTURES)
    for each in made:
        text = each.read_text()
        assert text.startswith("<?xml")
        assert "<script" not in text
        assert len(text) < 40_000
