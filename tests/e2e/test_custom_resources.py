"""The custom resources at an API server: validation, defaults, immutability and columns."""

from __future__ import annotations

import copy
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from api.malformed_policies import MALFORMED, MalformedPolicy
from deploy.manifests import documents as installed
from deploy.manifests import of_kind
from e2e.conftest import define, documents
from e2e.door import door, kubeconfig_for
from e2e.speaker import MERGE, TABLE, Speaker, speaking
from plimsoll.api.schema.resource import ResourceMeta
from plimsoll.api.v1alpha1 import Eviction, SchedulingPolicy
from plimsoll.api.v1alpha1.eviction import (
    EvictedOwner,
    EvictionSpec,
    EvictionStatus,
    PodReference,
    Replacement,
)
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.rebalancing import Mode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from roadstead.pytest_plugin import StartRoadstead

pytestmark = pytest.mark.e2e

POLICIES = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
async def records(speaker: Speaker) -> AsyncIterator[str]:
    """The path of Eviction records in a namespace of the test's own."""
    name = f"records-{uuid.uuid4().hex[:8]}"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    (await speaker.request("POST", "/api/v1/namespaces", namespace)).accepted()
    yield f"/apis/plimsoll.dev/v1alpha1/namespaces/{name}/evictions"
    await speaker.request("DELETE", f"/api/v1/namespaces/{name}")


def a_record(name: str = "web-1-0123abcd") -> dict[str, Any]:
    """A record of moving web-1 from n1 to n2."""
    return Eviction(
        metadata=ResourceMeta(name=name, labels={"plimsoll.dev/policy": "default"}),
        spec=EvictionSpec(
            pod=PodReference(namespace="shop", name="web-1", uid="u1"),
            owner=EvictedOwner(api_version="apps/v1", kind="ReplicaSet", name="web", uid="o1"),
            policy="default",
            strategy="RemoveDuplicates",
            mode=Mode.ENFORCE,
            reason="two pods of ReplicaSet web on one node",
            from_node="n1",
            target_node="n2",
        ),
    ).to_wire()


async def accepted_ones(speaker: Speaker, malformed: Iterable[MalformedPolicy]) -> list[str]:
    """Those that are not refused with their field named; as kubectl applies them: strictly."""
    wrong = []
    for policy in malformed:
        query = {"fieldValidation": "Strict", "dryRun": "All"}
        answer = await speaker.request("POST", POLICIES, policy.to_object(), **query)
        if answer.status not in {400, 422} or policy.field not in answer.message:
            wrong.append(f"{policy.id}: {answer.status} {answer.message}")
    return wrong


async def test_every_malformed_policy_is_refused_with_the_field_named(speaker: Speaker) -> None:
    """Bounds, patterns, enums, types, lists and rules: the schema alone refuses them."""
    assert await accepted_ones(speaker, [policy for policy in MALFORMED if not policy.unknown]) == []


async def test_fields_that_do_not_exist_are_named_and_refused(speaker: Speaker) -> None:
    """A typo is an error, not a default."""
    assert await accepted_ones(speaker, [policy for policy in MALFORMED if policy.unknown]) == []


async def test_the_examples_are_accepted_as_they_are_meant(speaker: Speaker) -> None:
    """What the API server stores, with its defaults, means what the file means."""
    policies = [document for document in documents("examples") if document["kind"] == "SchedulingPolicy"]
    for document in policies:
        answer = await speaker.request("POST", POLICIES, document, fieldValidation="Strict", dryRun="All")

        stored = SchedulingPolicy.from_wire(answer.accepted())
        assert stored.spec == SchedulingPolicy.from_wire(document).spec
    assert len(policies) >= 3


@pytest.mark.parametrize("spec", [{}, {"rebalancing": {}}, {"scheduling": {"schedulerName": "plimsoll"}}])
async def test_defaults_of_the_api_server_are_the_models(speaker: Speaker, spec: dict[str, Any]) -> None:
    """And what was left out as a whole stays out."""
    policy = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "SchedulingPolicy", "metadata": {"name": "a"}}
    answer = await speaker.request("POST", POLICIES, policy | {"spec": spec}, dryRun="All")

    stored = answer.accepted()
    assert SchedulingPolicy.from_wire(stored).spec == SchedulingPolicy.from_wire({"spec": spec}).spec
    assert {"scheduling", "rebalancing"} & stored["spec"].keys() == spec.keys()


async def test_what_a_record_says_was_decided_never_changes(speaker: Speaker, records: str) -> None:
    """A history that can be rewritten explains nothing."""
    (await speaker.request("POST", records, a_record())).accepted()
    one = f"{records}/web-1-0123abcd"

    changed = await speaker.request("PATCH", one, {"spec": {"targetNode": "n3"}}, sends=MERGE)
    labelled = await speaker.request("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, sends=MERGE)

    assert changed.status == 422
    assert "the spec of a record never changes" in changed.message
    assert labelled.accepted()["metadata"]["labels"]["a"] == "b"


async def test_a_finished_record_cannot_be_finished_again(speaker: Speaker, records: str) -> None:
    """A second writer with an old cache is refused."""
    (await speaker.request("POST", records, a_record())).accepted()
    status = f"{records}/web-1-0123abcd/status"
    told = EvictionStatus()
    for phase in (Phase.PLANNED, Phase.EVICTING, Phase.EVICTED, Phase.SETTLED):
        told = told.entering(phase, NOON, message=f"reached {phase}")
        answer = await speaker.request("PATCH", status, {"status": told.to_wire()}, sends=MERGE)
        assert EvictionStatus.from_wire(answer.accepted()["status"]) == told

    again = await speaker.request("PATCH", status, {"status": {"phase": "Failed"}}, sends=MERGE)
    message = await speaker.request("PATCH", status, {"status": {"message": "seen"}}, sends=MERGE)

    assert again.status == 422
    assert "a finished record keeps its phase" in again.message
    assert message.status == 200


async def test_a_status_is_written_at_its_own_path(speaker: Speaker, records: str) -> None:
    """Creating a record cannot pretend that it is done."""
    pretending = a_record() | {"status": {"phase": "Settled"}}

    created = (await speaker.request("POST", records, pretending)).accepted()

    assert "status" not in created


async def test_the_table_of_records_tells_the_story(speaker: Speaker, records: str) -> None:
    """Pod, owner, from, to, landed, strategy, phase, age: as `kubectl get evictions` prints it."""
    (await speaker.request("POST", records, a_record())).accepted()
    told = EvictionStatus().entering(
        Phase.PLANNED, NOON, replacement=Replacement(name="web-2", uid="u2", node="n2")
    )
    path = f"{records}/web-1-0123abcd/status"
    (await speaker.request("PATCH", path, {"status": told.to_wire()}, sends=MERGE)).accepted()

    table = (await speaker.request("GET", records, takes=TABLE)).accepted()

    columns = [column["name"] for column in table["columnDefinitions"] if not column["priority"]]
    assert columns == ["Name", "Pod", "Owner", "From", "To", "Landed", "Strategy", "Phase", "Age"]
    assert table["rows"][0]["cells"][:8] == [
        "web-1-0123abcd",
        "web-1",
        "web",
        "n1",
        "n2",
        "n2",
        "RemoveDuplicates",
        "Planned",
    ]


async def test_records_are_selected_by_label_and_by_field(speaker: Speaker, records: str) -> None:
    """By what people ask: of which policy, from which node, in which phase."""
    other = copy.deepcopy(a_record("api-1-0123abcd"))
    other["spec"]["fromNode"] = "n9"
    del other["metadata"]["labels"]
    for record in (a_record(), other):
        (await speaker.request("POST", records, record)).accepted()

    async def names(**query: str) -> list[str]:
        listed = (await speaker.request("GET", records, **query)).accepted()
        return [item["metadata"]["name"] for item in listed["items"]]

    assert await names(fieldSelector="spec.fromNode=n9") == ["api-1-0123abcd"]
    assert await names(fieldSelector="spec.fromNode=n1,spec.strategy=RemoveDuplicates") == ["web-1-0123abcd"]
    assert await names(labelSelector="plimsoll.dev/policy=default") == ["web-1-0123abcd"]


async def test_kinds_are_found_by_short_name_and_category(speaker: Speaker) -> None:
    """Discovery has what kubectl needs for `spol`, `plev` and `get plimsoll`."""
    discovered = (await speaker.request("GET", "/apis/plimsoll.dev/v1alpha1")).accepted()

    found = {resource["name"]: resource for resource in discovered["resources"]}
    assert found["schedulingpolicies"]["shortNames"] == ["spol"]
    assert found["evictions"]["shortNames"] == ["plev"]
    assert found["schedulingpolicies"]["categories"] == found["evictions"]["categories"] == ["plimsoll"]
    assert {"schedulingpolicies/status", "evictions/status"} <= found.keys()


async def test_with_the_admission_policy_only_the_operator_writes_records(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """Each way round it is refused; a person with the right answers a proposal, and may delete it."""
    cluster = start_roadstead()
    records = "/apis/plimsoll.dev/v1alpha1/namespaces/default/evictions"
    one = f"{records}/web-1-0123abcd"
    async with (
        speaking(cluster.kubeconfig) as operator,
        door(cluster.plain_url, lambda _: True) as entrance,
        speaking(kubeconfig_for(tmp_path / "tenant", entrance.url, cluster.token)) as tenant,
    ):
        await define(operator)
        entrance.user, entrance.policies = "alice", of_kind(installed("dry-run"), "ValidatingAdmissionPolicy")
        made = (await operator.request("POST", records, a_record())).accepted()
        nameless = a_record()
        nameless["metadata"] = {"generateName": "web-1-"}
        evicted = {
            "phase": "Evicting",
            "transitions": [{"phase": "Evicting", "time": "2026-01-01T00:00:00Z"}],
        }
        hold = {"metadata": {"finalizers": ["example.com/hold"]}}
        owned = {"kind": "ConfigMap", "apiVersion": "v1", "name": "gone", "uid": "2"}
        attempts = [
            await tenant.request("POST", records, a_record("web-1-ffffffff")),
            await tenant.request("POST", records, nameless),
            await tenant.request("PATCH", f"{one}/status", {"status": evicted}, sends=MERGE),
            await tenant.request("PUT", f"{one}/status", {**made, "status": evicted}),
            await tenant.request("PATCH", one, hold, sends=MERGE),
            await tenant.request("PATCH", one, {"metadata": {"ownerReferences": [owned]}}, sends=MERGE),
            await tenant.request("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, sends=MERGE),
        ]
        answer = {"metadata": {"annotations": {"plimsoll.dev/approved": "true"}}}
        (await tenant.request("PATCH", one, answer, sends=MERGE)).accepted()
        (await tenant.request("DELETE", one)).accepted()
        attempts.append(await tenant.request("POST", records, a_record()))
        left = (await operator.request("GET", records)).accepted()["items"]

    assert [each.status for each in attempts] == [403] * len(attempts)
    assert attempts[0].message == (
        "ValidatingAdmissionPolicy 'plimsoll-own-records' with binding 'plimsoll-own-records' denied request:"
        " only the operator creates Eviction records: change the SchedulingPolicy, whose next run decides"
    )
    assert left == []
