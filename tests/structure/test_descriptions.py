"""Each text that users read about a field or an option can be read alone, without the line before it."""

import ast
import re
from collections.abc import Iterator

import pytest

from structure.sources import product

#: Words at the beginning that refer to something named elsewhere, or only go on with a sentence of before.
LEANING = re.compile(
    r"(Its|Their|Those|They|It|This|The same|All but|Only these|Such|By|Of|As|In|From|At|Over|On|Since|Until"
    r"|Before|After|Sorted)\b"
)
#: The same further on.
ELSEWHERE = re.compile(r"\b(likewise|the \w+ below)\b", re.IGNORECASE)

#: A text of fewer words says no more than the name of its field.
WORDS = 3


def texts(tree: ast.AST) -> Iterator[str]:
    """The texts of fields and options."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in {"description", "help"}:
            match node.value:
                case ast.Constant(str(text)) if text:
                    yield text


def leans(text: str) -> bool:
    """Whether a text needs what stands before it."""
    return bool(LEANING.match(text) or ELSEWHERE.search(text)) or len(text.split()) < WORDS


def test_descriptions_of_fields_and_options_stand_alone() -> None:
    found = {f"{each.name}: {text}" for each in product() for text in texts(each.tree) if leans(text)}
    assert not found, "say of what, in a sentence that needs no other:\n" + "\n".join(sorted(found))


@pytest.mark.parametrize(
    "text", ["Its name.", "Likewise, the longest.", "By resource.", "The same.", "How many."]
)
def test_a_text_that_leans_on_the_one_before_is_found(text: str) -> None:
    assert [each for each in texts(ast.parse(f"Field(description={text!r})")) if leans(each)] == [text]
