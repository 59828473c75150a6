"""Server-side apply: owners of fields, conflicts, removed fields."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roadstead.schemas import fields
from roadstead.schemas.schemas import ANY, Mapping
from roadstead.store import field_sets
from roadstead.store.managed_fields import Manager, Managers, updated
from roadstead.store.server_side_apply import apply
from roadstead.values.status_errors import StatusError

CONFIG_MAP = fields.struct("V1ConfigMap")
DEPLOYMENT = fields.struct("V1Deployment")


def who(name: str, operation: str = "Apply") -> Manager:
    """A manager that owns nothing yet."""
    return Manager(name, operation, "v1", "2020-02-02T02:02:02Z", "", {})


def applied(
    live: Any, managers: Managers, config: Any, name: str, *, schema: Any = CONFIG_MAP, force: bool = False
) -> tuple[Any, Managers]:
    """An apply by a manager."""
    return apply(live, managers, config, schema, who(name), force=force, has_status=False)


def data(**values: str) -> Any:
    """A ConfigMap with some data."""
    return {"metadata": {"name": "a"}, "data": values} if values else {"metadata": {"name": "a"}}


def test_value_of_another_is_a_conflict_that_names_it() -> None:
    """The message is what kubectl shows."""
    live, managers = applied(data(), (), data(x="1"), "alice")

    with pytest.raises(StatusError) as refused:
        applied(live, managers, data(x="2"), "bob")

    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "alice": .data.x'
    assert refused.value.reason == "Conflict"


def test_same_value_is_shared_and_stays_until_both_give_it_up() -> None:
    """A field goes when its last owner no longer wants it."""
    live, managers = applied(data(), (), data(x="1"), "alice")
    live, managers = applied(live, managers, data(x="1"), "bob")

    after_alice, managers = applied(live, managers, data(), "alice")
    after_bob, managers = applied(after_alice, managers, data(), "bob")

    assert after_alice["data"] == {"x": "1"}
    assert "data" not in after_bob


def test_force_takes_a_field_from_its_owner() -> None:
    """The former owner has lost it and may not take it back without force."""
    live, managers = applied(data(), (), data(x="1"), "alice")

    live, managers = applied(live, managers, data(x="2"), "bob", force=True)

    assert live["data"] == {"x": "2"}
    assert [one.name for one in managers] == ["bob"]


def test_update_by_another_takes_the_field() -> None:
    """Who updates a field owns it, as an Update of its version."""
    live, managers = applied(data(), (), data(x="1"), "alice")
    managers = updated(managers, live, data(x="9"), CONFIG_MAP, who("carol", "Update"))

    with pytest.raises(StatusError, match=r"conflict with \"carol\" using v1: \.data\.x"):
        applied(data(x="9"), managers, data(x="1"), "alice")


def test_containers_merge_by_name() -> None:
    """Two managers share a list; what one gives up is only its own."""

    def deployment(*containers: Any) -> Any:
        return {"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": list(containers)}}}}

    live, managers = applied(
        deployment(), (), deployment({"name": "main", "image": "1"}), "alice", schema=DEPLOYMENT
    )
    env = [{"name": "A", "value": "1"}]
    live, managers = applied(
        live, managers, deployment({"name": "main", "env": env}), "bob", schema=DEPLOYMENT
    )
    left, _ = applied(live, managers, {"metadata": {"name": "a"}}, "bob", schema=DEPLOYMENT)

    assert live["spec"]["template"]["spec"]["containers"] == [{"name": "main", "image": "1", "env": env}]
    assert left["spec"]["template"]["spec"]["containers"] == [{"name": "main", "image": "1"}]


keys = st.sampled_from(["a", "b", "c"])
trees = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3), max_leaves=6
)
configs = st.dictionaries(keys, trees, max_size=3)
LOOSE = Mapping(ANY)


@given(configs, configs)
def test_applying_again_changes_nothing(live: Any, config: Any) -> None:
    """An apply is idempotent: the same object and the same managers."""
    once, managers = apply(live, (), config, LOOSE, who("alice"), force=True, has_status=False)

    again, same = apply(once, managers, config, LOOSE, who("alice"), force=False, has_status=False)

    assert (again, same) == (once, managers)


@given(configs, configs)
def test_set_operations_are_those_of_sets(left: Any, right: Any) -> None:
    """What remains of a set without itself is nothing; a union contains both."""
    one, two = field_sets.applied(left, LOOSE), field_sets.applied(right, LOOSE)

    assert field_sets.difference(one, one) == {}
    assert field_sets.difference(one, field_sets.union(one, two)) == {}
    assert field_sets.difference(two, field_sets.union(one, two)) == {}
    assert field_sets.difference(one, {}) == one


def test_an_element_is_named_by_the_keys_that_it_has() -> None:
    """Drivers report about devices with a share and without; one without any key is refused."""
    schema = fields.struct("ResourceV1ResourceClaim")
    device = {"driver": "gpu.example.com", "pool": "p", "device": "d"}
    shared = {**device, "shareID": "11111111-2222-3333-4444-555555555555"}

    def reported(*devices: Any) -> Any:
        return {"metadata": {"name": "a"}, "status": {"devices": list(devices)}}

    live, managers = applied({"metadata": {"name": "a"}}, (), reported(device), "one", schema=schema)
    both, managers = applied(live, managers, reported(shared), "other", schema=schema)

    assert both["status"]["devices"] == [device, shared]
    assert (
        'k:{"device":"d","driver":"gpu.example.com","pool":"p"}'
        in (managers[0].fields["f:status"]["f:devices"])
    )
    with pytest.raises(StatusError, match="none of the keys"):
        applied(both, managers, reported({"data": {"x": 1}}), "other", schema=schema)
