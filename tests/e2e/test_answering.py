"""People answer proposals from a command line, in kubectl's manner."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from e2e.polls import PATIENCE_S, eventually
from e2e.speaker import MERGE
from forked import Forked
from plimsoll.cli.callers.proposal_answers import ProposalError, Question, answer
from plimsoll.kube.session.session import connected

if TYPE_CHECKING:
    from e2e.scene import Scene

#: What kubectl runs for ``kubectl plimsoll``.
PLUGIN = Path(sys.executable).with_name("kubectl-plimsoll")


@pytest.fixture
def say(scene: Scene, kubeconfig: Path, tmp_path: Path) -> Any:
    """Run a command in the scene's namespace: its exit status and what it said."""

    async def run(*words: str) -> tuple[int, str]:
        said = tmp_path / "said"
        said.unlink(missing_ok=True)
        process = Forked(
            "plimsoll",
            *words,
            *(("--namespace", scene.name) if "-A" not in words else ()),
            output=said,
            environment={"KUBECONFIG": str(kubeconfig), "COLUMNS": "400", "NO_COLOR": "1"},
        )
        status = await asyncio.to_thread(process.wait, PATIENCE_S)
        return status, said.read_text()

    return run


async def proposals(scene: Scene) -> tuple[str, dict[str, str]]:
    """Pods of two workloads had better leave a node; the policy, and the record of each workload's pod."""
    old = await scene.node("old")
    await scene.scheduling()
    for app in ("web", "shop"):
        await scene.deployment(app, 2, labels={"app": app, "set": "all"})
    await scene.node("new")
    await scene.change_node(old, {"spec": {"taints": [{"key": "gone", "effect": "NoSchedule"}]}})
    policy = await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints", mode="Approve"))
    await eventually(scene.phases, lambda phases: phases == ["Planned", "Planned"])
    found = await scene.records()
    return policy, {each["spec"]["pod"]["name"].split("-")[0]: each["metadata"]["name"] for each in found}


async def answers(scene: Scene) -> dict[str, str]:
    """What the records of the scene are annotated with, keyed by name."""
    return {
        each["metadata"]["name"]: each["metadata"]["annotations"]["plimsoll.dev/approved"]
        for each in await scene.records()
        if "plimsoll.dev/approved" in each["metadata"].get("annotations", {})
    }


async def test_one_proposal_is_approved_and_the_rest_rejected(
    scene: Scene, say: Any, kubeconfig: Path
) -> None:
    policy, records = await proposals(scene)

    plugin = await asyncio.create_subprocess_exec(
        PLUGIN,
        *("approve", records["web"], "--namespace", scene.name),
        env={"KUBECONFIG": str(kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert (await plugin.communicate())[0].decode() == f"eviction.plimsoll.dev/{records['web']} approved\n"
    assert plugin.returncode == 0
    status, said = await say("reject", "--all", "--policy", policy)
    assert status == 0, said
    assert f"eviction.plimsoll.dev/{records['shop']} rejected" in said.splitlines()
    assert records["web"] not in said  # it was answered, and its successor may wait by now

    async def ends() -> dict[str, str]:
        return {each["metadata"]["name"]: each["status"]["phase"] for each in await scene.records()}

    expected = {records["web"]: "Settled", records["shop"]: "Cancelled"}
    await eventually(ends, lambda phases: {name: phases[name] for name in expected} == expected)


@dataclass(slots=True)
class Busy:
    """A session before each of whose writes somebody else changes the record."""

    session: Any

    async def object(self, *asked: Any) -> Any:
        """Read."""
        return await self.session.object(*asked)

    async def request(self, method: str, path: str, change: Any, **more: Any) -> Any:
        """Change the record, unless it was, then write."""
        latest = await self.session.object("GET", path)
        if "noted" not in latest["metadata"].get("labels", {}):
            noted = {"metadata": {"labels": {"noted": "yes"}}}
            await self.session.request("PATCH", path, noted, **more)
        return await self.session.request(method, path, change, **more)


async def test_what_has_changed_is_rejected_and_not_approved(scene: Scene, kubeconfig: Path) -> None:
    """A rejection holds for the record as it is by now; who approves has seen another one."""
    _, records = await proposals(scene)
    async with connected(kubeconfig) as session:
        question = Question(scene.name, (records["web"],))
        with pytest.raises(ProposalError, match="has changed since it was read; look at it"):
            await answer(cast("Any", Busy(session)), question, approved=True)
        assert await answers(scene) == {}

        question = Question(scene.name, (records["shop"],))
        said = await answer(cast("Any", Busy(session)), question, approved=False)
        assert said == [f"eviction.plimsoll.dev/{records['shop']} rejected"]


@dataclass(slots=True)
class Removing:
    """A session before whose first write somebody else deletes its record."""

    session: Any
    removed: list[str] = field(default_factory=list)

    async def object(self, *asked: Any) -> Any:
        """Read."""
        return await self.session.object(*asked)

    async def request(self, method: str, path: str, change: Any, **more: Any) -> Any:
        """Delete the first one, then write."""
        if not self.removed:
            self.removed.append(path.rpartition("/")[2])
            await self.session.request("DELETE", path)
        return await self.session.request(method, path, change, **more)


async def test_what_is_gone_needs_no_rejection_unless_it_was_named(scene: Scene, kubeconfig: Path) -> None:
    policy, records = await proposals(scene)
    async with connected(kubeconfig) as session:
        named = Question(scene.name, (records["web"],))
        with pytest.raises(ProposalError, match="has changed since it was read; look at it"):
            await answer(cast("Any", Removing(session)), named, approved=False)
        assert await answers(scene) == {}
        # The policy proposes that move again.
        await eventually(scene.phases, lambda phases: phases == ["Planned", "Planned"])

        removing = Removing(session)
        said = await answer(cast("Any", removing), Question(scene.name, policy=policy), approved=False)
        assert len(removing.removed) == len(said) == 1
        assert removing.removed[0] not in said[0]


async def test_a_wrong_name_changes_nothing(scene: Scene, say: Any) -> None:
    """Also not the records that are named with it."""
    _, records = await proposals(scene)

    status, said = await say("approve", records["web"], "missing")
    assert status == 1
    assert said == (
        f"error: no eviction missing in namespace {scene.name}; kubectl get plev -A lists the records\n"
    )
    status, said = await say("approve", records["web"], "--policy", "another")
    assert status == 1
    assert "is of policy" in said
    assert await answers(scene) == {}


async def test_what_is_over_is_not_answered_again(scene: Scene, say: Any) -> None:
    _, records = await proposals(scene)
    assert (await say("reject", *records.values()))[0] == 0
    await eventually(scene.phases, lambda phases: phases == ["Cancelled", "Cancelled"])

    status, said = await say("approve", records["web"])
    assert status == 1
    assert said == (
        f"error: eviction.plimsoll.dev/{records['web']} is Cancelled: only Planned ones wait for an answer\n"
    )
    assert await say("approve", "--all") == (0, f"nothing waits for an answer in namespace {scene.name}\n")
    assert set((await answers(scene)).values()) == {"false"}


async def bundle(scene: Scene, *pods: str, moves: int) -> str:
    """Records of one bundle as a process that has ended may have left them; what they have in common."""
    name = f"{scene.name}-bundle-{pods[0]}"
    for position, pod in enumerate(pods, 1):
        record = {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {"name": f"{pod}-1a2b3c4d", "labels": {"plimsoll.dev/bundle": name}},
            "spec": {
                "pod": {"name": pod, "namespace": scene.name, "uid": f"uid-{pod}"},
                "strategy": "ConsolidateNodes",
                "reason": "its node is little used",
                "fromNode": "old",
                "targetNode": "new",
                "policy": f"{scene.name}-gone",
                "mode": "Approve",
                "planner": "Proven",
                "bundle": {"name": name, "position": position, "moves": moves},
            },
        }
        await scene.make(scene.records_path, record)
        path = f"{scene.records_path}/{pod}-1a2b3c4d/status"
        (await scene.speaker.request("PATCH", path, {"status": {"phase": "Planned"}}, sends=MERGE)).accepted()
    return name


async def test_one_name_answers_for_its_bundle(scene: Scene, say: Any) -> None:
    answers = []
    # When a policy of an earlier test has ended, the operator cancels records without a policy, as these are:
    # one of them may be gone before it is answered, and the next two are not.
    for one, other in (("a", "b"), ("c", "d"), ("e", "f")):
        await bundle(scene, one, other, moves=2)
        status, said = await say("approve", f"{other}-1a2b3c4d")
        answers.append((status, sorted(said.splitlines())))
        if status == 0 and len(answers[-1][1]) == 2 and "1 of them here" not in said:
            break

    assert answers[-1] == (
        0,
        [
            f"eviction.plimsoll.dev/{one}-1a2b3c4d approved",
            f"eviction.plimsoll.dev/{other}-1a2b3c4d approved",
        ],
    )


async def test_a_bundle_with_moves_elsewhere_says_so(scene: Scene, say: Any) -> None:
    # As above: a record may be cancelled before it is answered, and the next two are not.
    for pod in ("a", "b", "c"):
        name = await bundle(scene, pod, moves=3)
        status, said = await say("approve", f"{pod}-1a2b3c4d")
        if status == 0:
            break

    assert said.splitlines()[1:] == [
        (
            f"bundle {name} has 3 moves, 1 of them here: it waits for the others"
            f" (kubectl get plev -A -l plimsoll.dev/bundle={name})"
        )
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("reject", "some", "--all"), "name records, or say --all"),
        (("approve", "some", "-A"), "--all-namespaces goes with --all"),
    ],
)
async def test_what_is_not_clear_is_asked_for(say: Any, words: tuple[str, ...], sentence: str) -> None:
    status, said = await say(*words)
    assert status == 1
    assert sentence in said
