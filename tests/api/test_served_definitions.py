"""The definitions of crds/ as an API server accepts them and checks objects by them."""

from pathlib import Path

import pytest
import yaml

from roadstead.assembly import built_in_api
from roadstead.definitions.definitions import CRDS, Definitions
from roadstead.store.api import Api
from roadstead.values.status_errors import StatusError

OWN = sorted((Path(__file__).parents[2] / "crds").glob("*.yaml"))


@pytest.fixture
def api() -> Api:
    """An API that serves the resources of definitions."""
    api = built_in_api()
    Definitions(api)
    return api


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_each_definition_is_accepted(api: Api, path: Path) -> None:
    """As a real server would accept them: schemas, defaults and rules."""
    definition = yaml.safe_load(path.read_text())

    api.create(CRDS, definition)

    established = api.get(CRDS, None, definition["metadata"]["name"])["status"]["conditions"]
    assert all(one["status"] == "True" for one in established)


def test_a_policy_is_checked_by_its_rules(api: Api) -> None:
    """The message names the field and what is allowed."""
    for path in OWN:
        api.create(CRDS, yaml.safe_load(path.read_text()))
    namespaces = {"include": ["a"], "exclude": ["b"]}
    policy = {"metadata": {"name": "p"}, "spec": {"scope": {"namespaces": namespaces}}}

    with pytest.raises(StatusError) as refused:
        api.create("schedulingpolicies.plimsoll.dev", policy)

    assert refused.value.details["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: give either include or exclude, not both",
            "field": "spec.scope.namespaces.exclude",
        }
    ]
