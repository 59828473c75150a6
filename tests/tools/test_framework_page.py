"""docs/reference/framework.md says what the code says, of every name that authors import."""

from pathlib import Path

import pytest

from pages import framework

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "framework.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == framework.page(), "run `make docs`"


@pytest.mark.parametrize("name", ["SECTIONS", "GO"])
def test_a_name_without_a_place_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is exported and not listed, and one that Go's table has and no module exports."""
    changed = {"SECTIONS": {"Only": "Status"}, "GO": "fwk.Gone | Gone |"}[name]
    monkeypatch.setattr(framework, name, changed)

    with pytest.raises(framework.PageError, match="Gone" if name == "GO" else "Snapshot"):
        framework.page()


def test_every_field_and_method_of_an_extension_point_is_on_the_page() -> None:
    """With its signature, and what an attribute is."""
    page = framework.page()

    assert "- `filter_node(state: CycleState, pod: PodInfo, node: NodeView) -> Status`: Success" in page
    assert "- `reads: Reads = Reads.POD`: The inputs of its results." in page
    assert "- `renews: ClassVar[bool]`" in page
