"""docs/pictures: diagrams as their source has them, readable aloud, in light and dark."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pictures.diagrams import diagrams, drawn

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def test_the_drawings_are_as_their_source_is() -> None:
    found = {name: (ROOT / "docs/pictures" / name).read_text(encoding="utf-8") for name in diagrams()}

    assert found == diagrams(), "run `make docs`"


@pytest.mark.parametrize("name", diagrams())
def test_a_drawing_is_read_aloud_follows_the_scheme_and_is_shown(name: str) -> None:
    """Boxes lie apart and within the drawing; a page shows it with words for those who do not see it."""
    drawing = ET.fromstring(diagrams()[name])

    assert drawing.findtext(f"{SVG}title")
    assert drawing.findtext(f"{SVG}desc")
    assert "prefers-color-scheme:dark" in (drawing.findtext(f"{SVG}style") or "")
    width, height = (float(drawing.attrib[each]) for each in ("width", "height"))
    boxes = [each for each in drawing.iter(f"{SVG}rect") if "rx" in each.attrib]
    corners = {(float(each.attrib["x"]), float(each.attrib["y"])) for each in boxes}
    assert len(corners) == len(boxes)
    assert all(x + 150 <= width and y + 46 <= height for x, y in corners)
    pages = (ROOT / "docs").glob("*.md")
    assert any(f"](pictures/{name})" in page.read_text(encoding="utf-8") for page in pages)


def test_an_arrow_to_nowhere_fails() -> None:
    source = {"title": "", "description": "", "boxes": {"a": [0, 0, "A", ""]}, "arrows": [["a", "b"]]}
    with pytest.raises(KeyError):
        drawn(source)
