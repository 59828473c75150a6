"""Plugins and strategies read kinds of objects that they declare: custom resources, ConfigMaps."""

import asyncio
from typing import Any, ClassVar

import msgspec
import pytest

from misbehaving.stage import Stage, played
from plimsoll.framework import (
    SUCCESS,
    ActionType,
    Declares,
    EnqueueExtensions,
    EventWithHint,
    NodeFilter,
    Reads,
    Registry,
    WatchedObject,
    unschedulable,
)
from plimsoll.framework.descheduling import Strategy, StrategyKind
from plimsoll.framework.descheduling.registry import StrategyRegistry
from plimsoll.policies import extensions

QUOTAS = "rackquotas.example.com"


class RackQuotaSpec(msgspec.Struct, frozen=True, rename="camel"):
    most_pods: int = 0


class RackQuota(WatchedObject, frozen=True):
    api_version: ClassVar = "example.com/v1"
    plural: ClassVar = "rackquotas"
    spec: RackQuotaSpec = RackQuotaSpec()


class RackDefaults(WatchedObject, frozen=True):
    api_version: ClassVar = "v1"
    plural: ClassVar = "configmaps"
    kind: ClassVar = "ConfigMap"
    in_namespace: ClassVar = "default"
    match_labels: ClassVar[Any] = {"for": "racks"}
    data: dict[str, str] = msgspec.field(default_factory=dict)


class Quotas(NodeFilter, EnqueueExtensions):
    """A node takes as many pods as the quota of its name has, or as the ConfigMap says of all."""

    name: ClassVar = "Quotas"
    declares: ClassVar = Declares(reads=Reads.ROW, objects=(RackQuota, RackDefaults))

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        return SUCCESS

    def filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        self._objects = snapshot.objects
        return super().filter(state, pod, snapshot)


def most(objects: Any, node: str) -> int:
    quota = objects.of(RackQuota).get(node)
    if quota is not None:
        return int(quota.spec.most_pods)
    return int(objects.of(RackDefaults)["default/racks"].data["most"])


class NodeQuotas(Quotas):
    name: ClassVar = "NodeQuotas"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Any:
        allowed = most(self._objects, node.name)
        return SUCCESS if len(node.pods) < allowed else unschedulable("rack is full")

    def events_to_register(self) -> Any:
        return (EventWithHint("RackQuota", ActionType.ADD | ActionType.UPDATE),)


PACKAGES = {extensions.PLUGINS: {"NodeQuotas": f"{__name__}:NodeQuotas"}}


def the_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": QUOTAS},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {
                "plural": "rackquotas",
                "singular": "rackquota",
                "kind": "RackQuota",
                "listKind": "RackQuotaList",
            },
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def a_config_map(name: str, labels: dict[str, str], most_pods: int) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "labels": labels}
    return {"metadata": meta, "data": {"most": str(most_pods)}}


def test_pods_are_placed_by_custom_resources_and_config_maps_as_they_change() -> None:
    """A quota that is raised requeues the pod that it refused; a ConfigMap without the label is not read."""
    seen: dict[str, str] = {}

    async def story(stage: Stage) -> None:
        api = stage.cluster.api
        api.create("customresourcedefinitions.apiextensions.k8s.io", the_definition())
        api.create("configmaps", a_config_map("racks", {"for": "racks"}, 0))
        api.create("configmaps", a_config_map("others", {"for": "others"}, 9))
        await asyncio.sleep(70.0)  # a kind that was not there is looked for once a minute
        stage.serve("quotas", "NodeQuotas")
        await asyncio.sleep(5.0)
        stage.pod("p", "quotas")
        await asyncio.sleep(5.0)
        seen["refused"] = stage.said_of_pod("p")
        api.create(QUOTAS, {"metadata": {"name": "n1"}, "spec": {"mostPods": 1}})
        await asyncio.sleep(5.0)
        seen["bound"] = stage.node_of("p")
        seen["policy"] = stage.said_of_policy("quotas")

    played(story, [], packages=PACKAGES)

    assert "rack is full" in seen["refused"]
    assert seen["bound"] == "n1"
    assert seen["policy"] == ""


def test_where_the_kind_is_missing_the_policy_says_what_is_needed_until_it_is_there() -> None:
    """And the pod waits: it is not placed by half of what the plugin reads."""
    seen: dict[str, Any] = {}

    async def story(stage: Stage) -> None:
        stage.cluster.api.create("configmaps", a_config_map("racks", {"for": "racks"}, 1))
        stage.serve("quotas", "NodeQuotas")
        await asyncio.sleep(15.0)
        stage.pod("p", "quotas")
        await asyncio.sleep(5.0)
        seen["node"], seen["policy"] = stage.node_of("p"), stage.said_of_policy("quotas")
        stage.cluster.api.create("customresourcedefinitions.apiextensions.k8s.io", the_definition())
        await asyncio.sleep(200.0)
        seen["later"], seen["policy later"] = stage.node_of("p"), stage.said_of_policy("quotas")

    played(story, [], packages=PACKAGES)

    assert seen["node"] == ""
    assert "rackquotas.example.com are not known" in seen["policy"]
    assert "may list and watch it" in seen["policy"]
    assert seen["later"]
    assert seen["policy later"] == ""


class ReadsQuotas(Strategy):
    name: ClassVar = "ReadsQuotas"
    kind: ClassVar = StrategyKind.DESCHEDULE
    declares: ClassVar = Declares(objects=(RackQuota,))

    def candidates(self, context: Any) -> Any:
        return iter(())


def test_a_kind_that_several_parts_declare_is_watched_once() -> None:
    """By plugins and by strategies; by namespace and label where the class says so."""
    quotas, defaults = extensions.declared(Registry([NodeQuotas]), StrategyRegistry([ReadsQuotas]))

    assert (quotas.path, quotas.selector) == ("/apis/example.com/v1/rackquotas", "")
    assert (defaults.path, defaults.selector) == ("/api/v1/namespaces/default/configmaps", "for=racks")


class WithAList(WatchedObject, frozen=True):
    api_version: ClassVar = "v1"
    plural: ClassVar = "things"
    items: list[str] = []  # noqa: RUF012 - what it is about


class Changeable(msgspec.Struct):
    size: int = 0


class WithAChangeable(WatchedObject, frozen=True):
    api_version: ClassVar = "v1"
    plural: ClassVar = "things"
    parts: tuple[Changeable, ...] = ()


class Nameless(WatchedObject, frozen=True):
    api_version: ClassVar = "v1"


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (WithAList, "WithAList.items could be changed by one plugin for all"),
        (WithAChangeable, "WithAChangeable.parts could be changed by one plugin for all"),
        (Nameless, "Nameless needs the class attributes api_version and plural"),
        (dict, "no class derived from plimsoll.framework.WatchedObject"),
    ],
)
def test_a_kind_that_cannot_be_watched_or_shared_is_refused(kind: Any, problem: str) -> None:
    """When the plugin is registered, with the part and what to use instead."""
    plugin = type("Odd", (NodeQuotas,), {"name": "Odd", "declares": Declares(objects=(kind,))})

    with pytest.raises(Exception, match=problem):
        Registry([plugin])
