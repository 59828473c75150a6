"""The document of an answer has its fields as the API spells them, all the way down."""

from plimsoll.answers.answer import API_VERSION, Answer, AnswerPart


class Part(AnswerPart):
    """A part of several words."""

    ready_pods: int = 1


class TwoWords(Answer):
    """An answer with parts."""

    first_part: Part = Part()
    more_parts: tuple[Part, ...] = (Part(ready_pods=2),)


def test_fields_are_in_camel_case_below_version_and_kind() -> None:
    assert TwoWords().document() == {
        "apiVersion": API_VERSION,
        "kind": "TwoWords",
        "firstPart": {"readyPods": 1},
        "moreParts": [{"readyPods": 2}],
    }
