"""Options of writes, over HTTP: as kube-apiserver 1.36.2 answers."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from roadstead.clients import RunningCluster

NAMESPACED = "/api/v1/namespaces/default"
NAMED = {"metadata": {"name": "m"}}


@pytest.fixture
def ask(roadstead_process: RunningCluster) -> Any:
    """Send a request; gives the status and the answer."""

    def send(method: Any, path: Any, body: Any = None, media: str = "application/json") -> Any:
        request = urllib.request.Request(
            f"{roadstead_process.plain_url}{NAMESPACED}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {roadstead_process.token}", "Content-Type": media},
            method=method,
        )
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    return send


@pytest.fixture
def config_map(ask: Any) -> Iterator[Any]:
    """The name of a config map."""
    _, made = ask("POST", "configmaps", {"metadata": {"generateName": "options-"}, "data": {"a": "b"}})
    name = made["metadata"]["name"]
    yield name
    ask("DELETE", f"configmaps/{name}")


@pytest.mark.parametrize(
    ("manager", "reason"), [("x" * 129, "FieldValueTooLong"), ("%00", "FieldValueInvalid")]
)
def test_a_field_manager_has_a_form(ask: Any, manager: Any, reason: Any) -> None:
    """At most 128 bytes, all of them printable."""
    status, message = ask(
        "POST", f"configmaps?dryRun=All&fieldManager={manager}", {"metadata": {"name": "m"}}
    )

    assert status == 422
    causes = [(one["reason"], one["field"]) for one in message["details"]["causes"]]
    assert causes == [(reason, "fieldManager")]


def test_what_the_body_says_of_a_deletion_rules_out_the_parameters(ask: Any, config_map: Any) -> None:
    """They count where there is no body only."""
    status, message = ask("DELETE", f"configmaps/{config_map}?propagationPolicy=None")
    assert (status, message["details"]["causes"][0]["field"]) == (422, "propagationPolicy")

    assert ask("DELETE", f"configmaps/{config_map}?propagationPolicy=None", {"dryRun": ["All"]})[0] == 200
    assert ask("GET", f"configmaps/{config_map}")[0] == 200


def test_the_body_of_a_deletion_is_its_options(ask: Any, config_map: Any) -> None:
    """Of any group; nothing else is taken for them."""
    other = {"kind": "ConfigMap", "apiVersion": "v1"}
    assert ask("DELETE", f"configmaps/{config_map}", other)[0] == 400

    options = {"kind": "DeleteOptions", "apiVersion": "policy/v1"}
    assert ask("DELETE", f"configmaps/{config_map}", options)[0] == 200


def test_a_missing_subresource_is_answered_by_a_status(ask: Any, config_map: Any) -> None:
    """Not as a page that is not found."""
    status, message = ask("GET", f"configmaps/{config_map}/scale")

    assert (status, message["reason"]) == (404, "NotFound")


def test_a_patch_of_another_type_is_refused_before_its_parameters(ask: Any, config_map: Any) -> None:
    """415 comes first."""
    assert ask("PATCH", f"configmaps/{config_map}?dryRun=None", {}, "text/plain")[0] == 415


def test_what_is_in_a_list_does_not_repeat_its_kind(ask: Any, config_map: Any) -> None:
    """Built-in kinds are named by the list alone."""
    _, message = ask("GET", f"configmaps?fieldSelector=metadata.name%3D{config_map}")

    assert message["kind"] == "ConfigMapList"
    assert [sorted(one) for one in message["items"]] == [["data", "metadata"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"binaryData": {"a": "!"}}, 400),
        ({"metadata": {"name": "x", "creationTimestamp": ""}}, 400),
        ({"metadata": {"name": "x", "generation": 2**70}}, 400),
        ({"metadata": {"name": "x", "generation": -1}}, 422),
        ({"metadata": None}, 422),
        ({"metadata": {"name": "x", "resourceVersion": "5"}}, 201),
    ],
)
def test_values_must_be_of_their_types(ask: Any, body: Any, status: Any) -> None:
    """Bytes, times and numbers; a version is passed over where nothing is written."""
    assert ask("POST", "configmaps?dryRun=All", {"metadata": {"name": "x"}, **body})[0] == status
