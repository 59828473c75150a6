"""Texts are cut in one place, and its edge is tested; each further one would have an edge of its own."""

import ast
from collections.abc import Iterator

from structure.sources import Module, product


def _cut_by_hand(module: Module) -> Iterator[int]:
    """Lines where a text is taken as it is if it is short enough, and else a part of it."""
    for node in module.nodes:
        if isinstance(node, ast.IfExp) and isinstance(node.test, ast.Compare):
            kept, cut = ast.unparse(node.body), ast.unparse(node.orelse)
            if ast.unparse(node.test).startswith(f"len({kept}) <") and "…" in cut.replace("...", "…"):
                yield node.lineno


def test_texts_are_cut_in_one_place() -> None:
    """The notes of events are cut by bytes, as upstream cuts them."""
    found = {each.place for each in product() if any(_cut_by_hand(each))}

    assert found == {"model/shortened.py"}
