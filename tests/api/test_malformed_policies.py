"""Malformed policies are refused by the models, with the field named; an API server does it in tests/e2e."""

import pytest
from pydantic import ValidationError

from api.malformed_policies import BY_HAND, MALFORMED, MalformedPolicy
from plimsoll.api.v1alpha1 import SchedulingPolicy
from plimsoll.framework.field_errors import field_errors


@pytest.mark.parametrize("malformed", MALFORMED, ids=[malformed.id for malformed in MALFORMED])
def test_a_malformed_policy_is_refused_by_field(malformed: MalformedPolicy) -> None:
    """An error has the exact path of the field, and a sentence."""
    with pytest.raises(ValidationError) as caught:
        SchedulingPolicy.from_wire(malformed.to_object())

    errors = field_errors(caught.value, model=SchedulingPolicy)
    assert malformed.field in [error.path for error in errors]
    assert all(error.sentence for error in errors)


def test_the_table_is_as_large_as_promised() -> None:
    """At least forty by hand; every case has a name of its own."""
    assert len(BY_HAND) >= 40
    assert len({malformed.id for malformed in MALFORMED}) == len(MALFORMED)
