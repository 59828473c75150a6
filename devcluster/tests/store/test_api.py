"""The one write path: names, versions, conflicts, deletion, history."""

import pytest

from roadstead.assembly import built_in_api
from roadstead.store.api import Api, StatusError
from roadstead.values.resources import Obj


@pytest.fixture
def api() -> Api:
    """An API with what every cluster has."""
    return built_in_api()


def a_config_map(name: str = "settings", **meta: object) -> Obj:
    """A ConfigMap in the default namespace."""
    return {"metadata": {"name": name, "namespace": "default", **meta}, "data": {"a": "1"}}


def test_creation_completes_metadata(api: Api) -> None:
    """The server gives uid, version and time, and does not touch the caller's object."""
    given = a_config_map()

    made = api.create("configmaps", given)

    assert set(made["metadata"]) == {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"}
    assert given == a_config_map()


def test_second_creation_is_refused(api: Api) -> None:
    """A name is taken once."""
    api.create("configmaps", a_config_map())

    with pytest.raises(StatusError, match='configmaps "settings" already exists') as refused:
        api.create("configmaps", a_config_map())

    assert (refused.value.code, refused.value.reason) == (409, "AlreadyExists")


def test_stale_update_conflicts(api: Api) -> None:
    """Of two who read the same version, the second to write is refused."""
    read = api.create("configmaps", a_config_map())
    api.update("configmaps", {**read, "data": {"a": "2"}})

    with pytest.raises(StatusError) as refused:
        api.update("configmaps", {**read, "data": {"a": "3"}})

    assert refused.value.reason == "Conflict"


def test_update_that_changes_nothing_is_no_write(api: Api) -> None:
    """The version stays, and no subscriber is called."""
    made = api.create("configmaps", a_config_map())
    message: list[str] = []
    api.subscribe("configmaps", lambda kind, new, old: message.append(kind))

    again = api.update("configmaps", made)

    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert message == []


def test_finalizer_keeps_a_deleted_object(api: Api) -> None:
    """It goes when its last finalizer is taken."""
    api.create("configmaps", a_config_map(finalizers=["example.com/wait"]))
    message: list[str] = []
    api.subscribe("configmaps", lambda kind, new, old: message.append(kind))

    marked = api.delete("configmaps", "default", "settings")
    api.patch("configmaps", "default", "settings", {"metadata": {"finalizers": None}})

    assert marked["metadata"]["deletionTimestamp"]
    assert message == ["MODIFIED", "DELETED"]
    assert api.find("configmaps", "default", "settings") is None


def test_subscriber_that_writes_is_heard_in_order(api: Api) -> None:
    """A commit made by a subscriber is announced after the one that caused it."""
    message: list[str] = []

    def answer(kind: str, new: Obj, old: Obj | None) -> None:
        if new["metadata"]["name"] == "one":
            api.create("configmaps", a_config_map("two"))

    api.subscribe("configmaps", answer)
    api.subscribe("configmaps", lambda kind, new, old: message.append(new["metadata"]["name"]))

    api.create("configmaps", a_config_map("one"))

    assert message == ["one", "two"]
