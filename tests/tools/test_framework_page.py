"""docs/reference/framework.md says what the code says, of every name that authors import."""

import pytest

from pages import framework


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
