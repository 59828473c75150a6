"""Each text that users read about a field or an option can be read alone, without the line before it."""

import ast
import importlib
import re
from collections.abc import Iterable, Iterator

import pytest
from pydantic import BaseModel, Field

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


#: A file of another program, whose fields that program's documents describe.
FOREIGN = "plimsoll.migration.descheduler_file"


def bases(tree: ast.AST) -> dict[str, set[str]]:
    """The names of the bases of each class, without their modules and parameters."""
    return {
        each.name: {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in each.bases}
        for each in ast.walk(tree)
        if isinstance(each, ast.ClassDef)
    }


def models() -> Iterator[type[BaseModel]]:
    """The pydantic models of the product, however they inherit; only their modules are imported."""
    classes = {each.name: bases(each.tree) for each in product()}
    known, before = {"BaseModel"}, 0
    while before < len(known):
        before = len(known)
        known |= {name for found in classes.values() for name, base in found.items() if base & known}
    for module, found in classes.items():
        if module != FOREIGN and any(base & known for base in found.values()):
            for each in vars(importlib.import_module(module)).values():
                if isinstance(each, type) and issubclass(each, BaseModel) and each.__module__ == module:
                    yield each


def undescribed(kinds: Iterable[type[BaseModel]]) -> set[str]:
    """Fields without a text, of those that the models declare themselves."""
    return {
        f"{kind.__name__}.{name}"
        for kind in kinds
        for name, field in kind.model_fields.items()
        if name in kind.__annotations__ and not field.description
    }


def test_every_field_that_users_read_or_write_has_a_description() -> None:
    kinds = list(models())
    assert {"Eviction", "WhatIfAnswer", "NodeLoadArgs"} <= {each.__name__ for each in kinds}
    found = undescribed(kinds)

    assert not found, "say what each is:\n" + "\n".join(sorted(found))


class _Bare(BaseModel):
    plain: int
    given: int = 0
    empty: int = Field(default=0, description="")
    said: int = Field(description="Number of pods.")


def test_a_field_without_a_description_is_found() -> None:
    assert undescribed([_Bare]) == {"_Bare.plain", "_Bare.given", "_Bare.empty"}


def test_descriptions_of_fields_and_options_stand_alone() -> None:
    found = {f"{each.name}: {text}" for each in product() for text in texts(each.tree) if leans(text)}
    assert not found, "say of what, in a sentence that needs no other:\n" + "\n".join(sorted(found))


@pytest.mark.parametrize(
    "text", ["Its name.", "Likewise, the longest.", "By resource.", "The same.", "How many."]
)
def test_a_text_that_leans_on_the_one_before_is_found(text: str) -> None:
    assert [each for each in texts(ast.parse(f"Field(description={text!r})")) if leans(each)] == [text]
