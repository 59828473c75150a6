"""Fields that are null, half set, or the second of their kind."""

from typing import Any

import pytest
from pydantic import BaseModel

from plimsoll.framework.errors import ConfigurationError
from plimsoll.migration.descheduler_file import as_decoded, read_policy


class Inner(BaseModel):
    """What a field holds."""

    name: str = ""
    count: int = 0
    numbers: dict[str, int | float] = {}
    items: list[int | float] = []


class Outer(BaseModel):
    """What a file holds."""

    inner: Inner = Inner()
    many: list[Inner] = []
    texts: list[str] = []
    whole: int = 0


@pytest.mark.parametrize(
    ("given", "decoded"),
    [
        ({"whole": None}, {}),
        ({"inner": {"count": None, "name": None}}, {"inner": {"name": ""}}),
        ({"inner": {"numbers": {"cpu": None, "m": 2.5}}}, {"inner": {"numbers": {"cpu": 0, "m": 2.5}}}),
        ({"inner": {"numbers": {"int": None, "float": 1}}}, {"inner": {"numbers": {"int": 0, "float": 1}}}),
        ({"inner": {"items": [1, None]}}, {"inner": {"items": [1, 0]}}),
        ({"many": [{}, {"name": None, "items": [None]}]}, {"many": [{}, {"name": "", "items": [0]}]}),
        ({"texts": ["a", None]}, {"texts": ["a", ""]}),
    ],
)
def test_nulls_are_read_as_by_gos_decoder(given: dict[str, Any], decoded: dict[str, Any]) -> None:
    """At any depth, and whatever the names of keys are; what was given stays as it is."""
    before = repr(given)

    assert as_decoded(Outer, given) == decoded
    assert repr(given) == before


@pytest.mark.parametrize("name", ["", "token"])
@pytest.mark.parametrize("namespace", ["", "monitoring"])
def test_the_secret_of_a_token_has_a_name_and_a_namespace(name: str, namespace: str) -> None:
    secret = {"name": name, "namespace": namespace}
    provider = {
        "source": "Prometheus",
        "prometheus": {"url": "http://p:9090", "authToken": {"secretReference": secret}},
    }
    document = {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [provider],
    }
    if name and namespace:
        assert read_policy(document).metrics_providers[0].source == "Prometheus"
        return

    with pytest.raises(ConfigurationError, match="does not set both namespace and name"):
        read_policy(document)
