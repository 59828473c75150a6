"""Arguments as written in a policy: closed, in camelCase, and refused with where they stand."""

from typing import Any

import pytest

from plimsoll.framework.args import PluginArgs, parse_args
from plimsoll.framework.errors import ConfigurationError


class Part(PluginArgs):
    """A nested argument."""

    how_many: int = 0


class Args(PluginArgs):
    """Arguments with a field of two words."""

    some_parts: tuple[Part, ...] = ()


def test_only_the_documented_spelling_is_read() -> None:
    """The name that a field has in the code is no name of the policy's."""
    given = {"someParts": [{"howMany": 2}], "apiVersion": "v1", "kind": "Args"}

    assert parse_args(Args, given, "args").some_parts == (Part(how_many=2),)
    assert parse_args(Args, None, "args") == Args()


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ({"some_parts": []}, "args.some_parts"),
        ({"someParts": [{"how_many": 2}]}, "args.someParts[0].how_many"),
        ({"someparts": []}, "args.someparts"),
    ],
)
def test_another_spelling_is_refused(given: dict[str, Any], where: str) -> None:
    """It would else be one that upstream refuses, or a typo that changes nothing."""
    with pytest.raises(ConfigurationError, match="there is no such field; did you mean") as caught:
        parse_args(Args, given, "args")

    assert where in str(caught.value)
