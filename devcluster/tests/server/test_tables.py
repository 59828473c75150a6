"""Tables: columns and cells as ``kubectl get`` prints them."""

import datetime as dt
from typing import Any

import pytest

from roadstead.server.tables import custom_value
from roadstead.table_columns.columns import human_duration, selector
from roadstead.table_columns.pods import NODES, PODS
from roadstead.values.resources import Obj

NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)


def cells(columns: Any, obj: Obj) -> dict[str, Any]:
    """The cells of an object by the names of their columns."""
    meta = {"name": "a", "creationTimestamp": "2026-01-02T03:04:00Z"}
    whole = {**obj, "metadata": {**meta, **obj.get("metadata", {})}}
    return {column.name: column.cell(whole, NOW) for column in columns}


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (600, "10m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 300, "3h5m"),
        (8 * 3600, "8h"),
        (48 * 3600, "2d"),
        (3 * 86_400 + 7200, "3d2h"),
        (8 * 86_400, "8d"),
        (3 * 365 * 86_400, "3y"),
        (3 * 365 * 86_400 + 86_400, "3y1d"),
        (9 * 365 * 86_400, "9y"),
        (-1, "0s"),
        (-10, "<invalid>"),
    ],
)
def test_ages_have_one_or_two_units(seconds: float, message: str) -> None:
    """As upstream's HumanDuration rounds."""
    assert human_duration(seconds) == message


def container(name: str, **state: Any) -> Obj:
    """The status of a container."""
    ready = "running" in state
    return {"name": name, "ready": ready, "restartCount": 0, "state": state}


SPEC = {"containers": [{"name": "main"}, {"name": "side"}]}


@pytest.mark.parametrize(
    ("status", "metadata", "message"),
    [
        ({"phase": "Pending"}, {}, ("0/2", "Pending")),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    container("main", running={}),
                    container("side", waiting={"reason": "CrashLoopBackOff"}),
                ],
            },
            {},
            ("1/2", "CrashLoopBackOff"),
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    container("main", terminated={"exitCode": 0, "reason": "Completed"}),
                    container("side", running={}),
                ],
            },
            {},
            ("1/2", "Running"),
        ),
        ({"phase": "Failed", "reason": "Evicted"}, {}, ("0/2", "Evicted")),
        (
            {"phase": "Failed", "containerStatuses": [container("main", terminated={"exitCode": 3})]},
            {},
            ("0/2", "ExitCode:3"),
        ),
        ({"phase": "Running"}, {"deletionTimestamp": "2026-01-02T03:04:00Z"}, ("0/2", "Terminating")),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            },
            {},
            ("0/2", "SchedulingGated"),
        ),
    ],
    ids=["pending", "crashing", "one of two done", "evicted", "exit code", "going", "gated"],
)
def test_status_of_a_pod(status: Obj, metadata: Obj, message: tuple[str, str]) -> None:
    """The word that tells most about its containers."""
    shown = cells(PODS, {"metadata": metadata, "spec": SPEC, "status": status})

    assert (shown["Ready"], shown["Status"]) == message


def test_pod_in_its_init_containers() -> None:
    """They are counted until the last has ended; a sidecar counts as a container."""
    spec = {"initContainers": [{"name": "one"}, {"name": "two"}], **SPEC}
    status = {
        "phase": "Pending",
        "initContainerStatuses": [container("one", terminated={"exitCode": 0}), container("two")],
    }

    assert cells(PODS, {"spec": spec, "status": status})["Status"] == "Init:1/2"
    sidecar = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}], **SPEC}
    assert cells(PODS, {"spec": sidecar, "status": {"phase": "Pending"}})["Ready"] == "0/3"


def test_restarts_tell_when_the_last_one_was() -> None:
    """In brackets, where it is known."""
    ended = {"terminated": {"finishedAt": "2026-01-02T03:00:05Z"}}
    status = {"containerStatuses": [{**container("main"), "restartCount": 3, "lastState": ended}]}

    assert cells(PODS, {"spec": SPEC, "status": status})["Restarts"] == "3 (4m ago)"


def test_node_tells_readiness_cordon_and_roles() -> None:
    """Roles are sorted; what is not known is said so."""
    labels = {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/edge": ""}
    node = {
        "metadata": {"labels": labels},
        "spec": {"unschedulable": True},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }

    shown = cells(NODES, node)

    assert shown["Status"] == "NotReady,SchedulingDisabled"
    assert shown["Roles"] == "edge,worker"
    assert (shown["Internal-IP"], shown["OS-Image"], shown["Age"]) == ("<none>", "<unknown>", "5s")


def test_selectors_are_shown_as_on_a_command_line() -> None:
    """Labels first, then expressions."""
    given = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["z", "y"]},
            {"key": "d", "operator": "DoesNotExist"},
        ],
    }

    assert selector(given) == "a=1,b=2,c in (y,z),!d"
    assert selector({}) == selector(None) == "<none>"


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (5, "string", "5"),
        ({"a": 1}, "string", '{"a":1}'),
        ("many", "integer", None),
        (True, "integer", None),
        (2.7, "integer", 2),
        (0.5, "number", 0.5),
        ("yes", "boolean", None),
        ("2026-01-02T03:04:00Z", "date", "5s"),
        ("yesterday", "date", "<invalid>"),
    ],
)
def test_custom_cell_is_of_its_columns_type_or_empty(value: Any, kind: str, shown: Any) -> None:
    """A value of another type is not shown, but in a column of strings."""
    assert custom_value(value, kind, NOW) == shown
