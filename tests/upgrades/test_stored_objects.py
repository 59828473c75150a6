"""Objects that the release before had stored are served and read by this version, whole.

``make upgrade-check ARGS="--record tests/upgrades/release_before.json"`` records it at a hand-over: finished
and open records, a surge and a node maintenance under way, policies with statuses, a group, a rule.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from e2e.conftest import define
from e2e.speaker import MERGE, speaking
from plimsoll.api.v1alpha1 import KINDS
from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.records.record import Record
from upgrades import release_before
from upgrades.release_before import ROOT, defaults_of

if TYPE_CHECKING:
    from roadstead.pytest_plugin import StartRoadstead

Obj = dict[str, Any]
RECORDED = json.loads(Path(__file__).with_name("release_before.json").read_text())
STORED: list[Obj] = RECORDED["objects"]
MODELS = {each.definition.kind: each for each in KINDS}
#: What an API server sets itself.
OWN = {"uid", "resourceVersion", "creationTimestamp", "generation"}


def test_it_has_one_of_each_kind_and_work_under_way() -> None:
    """So that the tests below are about something."""
    phases = Counter(each["status"]["phase"] for each in STORED if each["kind"] == "Eviction")

    assert {each["kind"] for each in STORED} == MODELS.keys()
    assert {"Evicted", "Surging", "Planned"} <= phases.keys()
    assert [each["status"]["phase"] for each in STORED if each["kind"] == "NodeMaintenance"] == ["Draining"]


async def test_these_definitions_serve_it_and_drop_nothing(start_roadstead: StartRoadstead) -> None:
    """Each object with its status is accepted, and comes back as it was."""
    cluster = start_roadstead(controllers=False, kubelets=False)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        for namespace in {each["metadata"].get("namespace") for each in STORED} - {None}:
            (
                await speaker.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            ).accepted()
        for stored in STORED:
            definition = MODELS[stored["kind"]].definition
            meta = {name: value for name, value in stored["metadata"].items() if name not in OWN}
            below = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
            path = f"/apis/plimsoll.dev/v1alpha1/{below}{definition.plural}"
            (
                await speaker.request("POST", path, {**stored, "metadata": meta}, fieldValidation="Strict")
            ).accepted()
            path = f"{path}/{meta['name']}"
            change = {"status": stored.get("status", {})}
            (await speaker.request("PATCH", f"{path}/status", change, sends=MERGE)).accepted()

            found = (await speaker.request("GET", path)).accepted()

            for part in ("spec", "status"):
                assert lost(stored.get(part, {}), found.get(part, {})) == [], path


def test_no_definition_adds_a_field_that_the_release_before_does_not_know() -> None:
    """Its operator refuses such a field, and under these definitions would have it in each object.

    So a new field has its default in the model only: ``json_schema_extra={"default": None}``.
    """
    assert set(defaults_of(ROOT / "crds")) <= set(RECORDED["defaults"])
    assert len(RECORDED["defaults"]) > 20


def test_a_record_is_written_without_what_goes_without_saying() -> None:
    """A field at its default would keep an operator that does not know it from reading the record."""
    surges = [each for each in STORED if each["kind"] == "Eviction" and "surge" in each["spec"]]
    for stored in surges:
        spec = {**stored["spec"], "surge": {**stored["spec"]["surge"], "kind": "Deployment"}}
        spec |= {"planner": "Proven", "directed": False}
        record = Record("shop", "web", EvictionSpec.model_validate(spec), EvictionStatus(), 0.0)
        said = record.document["spec"]

        assert not {"planner", "directed"} & {*said}
        assert "kind" not in said["surge"]
        assert EvictionSpec.model_validate(said) == record.spec
    assert surges


@pytest.mark.parametrize("kind", MODELS)
def test_this_operator_reads_it_and_drops_nothing(kind: str) -> None:
    """Every field of what was stored is in what its model says again."""
    for stored in (each for each in STORED if each["kind"] == kind):
        read = MODELS[kind].model_validate(stored).model_dump(mode="json", by_alias=True, exclude_unset=True)

        for part in ("spec", "status"):
            assert lost(stored.get(part, {}), read.get(part, {})) == [], stored["metadata"]["name"]


def lost(stored: Any, found: Any, path: str = "") -> list[str]:
    """The fields of a stored value that have another value now, or none; further fields may have defaults."""
    if isinstance(stored, dict) and isinstance(found, dict):
        pairs = [(f"{path}.{name}", value, found.get(name)) for name, value in stored.items()]
    elif isinstance(stored, list) and isinstance(found, list) and len(stored) == len(found):
        pairs = [(f"{path}[{at}]", *pair) for at, pair in enumerate(zip(stored, found, strict=True))]
    else:
        return [] if stored == found else [path]
    return [each for where, value, other in pairs for each in lost(value, other, where)]


def test_a_field_that_is_lost_is_found() -> None:
    """The comparison sees what definitions or a model would drop or change."""
    assert lost({"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": 1, "d": 0}, {}]}) == [".a[1].c"]
    assert lost({"a": {"b": "x"}}, {}) == [".a"]
    assert lost({"a": [1]}, {"a": [1, 2]}) == [".a"]


def test_a_commit_without_a_kind_of_the_story_is_refused_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before minutes of set-up that end with a 404."""
    said = {"rev-parse": "0123456789ab", "ls-tree": "crds/plimsoll.dev_podgroups.yaml"}
    monkeypatch.setattr(release_before, "git", lambda command, *_: said[command])

    with pytest.raises(SystemExit, match="0123 does not define nodemaintenances, rebalancingrules"):
        release_before.installed("0123", tmp_path)
    assert list(tmp_path.iterdir()) == []
