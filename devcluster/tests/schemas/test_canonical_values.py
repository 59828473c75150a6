"""Canonical quantities and times; decoding of objects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.schemas import fields, quantity_forms, timestamps

suffixes = st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2"])


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Gi", "107374182400m"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("1073741824", "1073741824"),
    ],
)
def test_quantities_are_made_canonical(given_text: str, expected: str) -> None:
    """No fraction, the greatest suffix of the same format."""
    assert quantity_forms.canonical(given_text) == expected


@given(st.integers(-(10**6), 10**6), suffixes)
def test_canonical_form_keeps_the_value_and_is_its_own(number: int, suffix: str) -> None:
    """The form changes, the value does not."""
    canonical = quantity_forms.canonical(f"{number}{suffix}")

    assert quantity_forms.value(canonical) == quantity_forms.value(f"{number}{suffix}")
    assert quantity_forms.canonical(canonical) == canonical


@pytest.mark.parametrize("text", ["", "lots", "1 Gi", "1KI", "--1", "1.2.3"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="quantities must match"):
        quantity_forms.canonical(text)


def test_times_are_in_utc_and_whole_seconds() -> None:
    """A zone is converted, decimals are cut."""
    assert timestamps.checked_time("2020-02-02T03:02:02.9+01:00") == "2020-02-02T02:02:02Z"


def test_micro_times_need_six_decimals() -> None:
    """As Go's layout does."""
    assert timestamps.checked_microtime("2020-02-02T02:02:02.500000Z") == "2020-02-02T02:02:02.500000Z"
    with pytest.raises(ValueError, match="cannot parse"):
        timestamps.checked_microtime("2020-02-02T02:02:02.5Z")


def test_decoding_names_unknown_fields_and_drops_what_go_omits() -> None:
    """Unknown fields with their paths; nulls, empty lists and false defaults are not stored."""
    pod = {
        "metadata": {"name": "a", "labels": {}},
        "spec": {
            "hostNetwork": False,
            "tolerations": [],
            "nodeName": "",
            "affinity": None,
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "main", "imag": "x", "resources": {"requests": {"cpu": 0.5}}}],
        },
    }
    strays: list[str] = []

    taken = fields.struct("V1Pod").taken(pod, strays)

    assert strays == ["spec.containers[0].imag"]
    assert taken == {
        "metadata": {"name": "a"},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}],
        },
    }


def test_null_is_the_zero_of_what_a_map_or_a_list_has() -> None:
    """An empty object, or no quantity of something."""
    policy = {"validValues": [None, "1"]}
    device = {"name": "d", "attributes": {"a": None}, "capacity": {"b": None, "c": {"requestPolicy": policy}}}
    asked = {"requests": [{"exactly": {"capacity": {"requests": {"memory": None}}}}]}

    pool = fields.struct("V1ResourceSlice").taken({"spec": {"devices": [device]}}, [])
    claim = fields.struct("ResourceV1ResourceClaim").taken({"spec": {"devices": asked}}, [])

    (found,) = pool["spec"]["devices"]
    assert found["attributes"] == {"a": {}}
    assert found["capacity"] == {"b": {}, "c": {"requestPolicy": {"validValues": ["0", "1"]}}}
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["capacity"] == {"requests": {"memory": "0"}}


def test_an_empty_name_of_a_claim_is_a_value() -> None:
    """As are policies of spreading: each is refused by the name of its field."""
    claims = [{"name": "a", "resourceClaimName": ""}, {"name": "b", "resourceClaimTemplateName": ""}]
    spread = [{"nodeAffinityPolicy": "", "nodeTaintsPolicy": ""}]
    spec = {"resourceClaims": claims, "topologySpreadConstraints": spread}

    assert fields.struct("V1Pod").taken({"spec": spec}, []) == {"spec": spec}
