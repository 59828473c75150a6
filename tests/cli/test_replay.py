"""``plimsoll replay``: golden answers, two sets of policies side by side, and its page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from cli.commands import say
from cli.golden_files import check
from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.cli.commands import replay
from plimsoll.commands.errors import UserError
from plimsoll.simulation.owners import replacement
from plimsoll.snapshots import file as files
from plimsoll.testing.builders import a_pod, the_info

PAGE = Path(__file__).parents[2] / "docs" / "cli" / "replay.md"


@pytest.fixture(autouse=True)
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """cluster.json.gz with duplicates on a node, and the policies of the page in files."""
    monkeypatch.chdir(tmp_path)
    content = content_of(
        [
            *(a_node_document(f"n{number}") for number in (1, 2, 3)),
            *(a_pod_document(f"web-{number}", node="n1") for number in range(6)),
            *(a_pod_document(f"job-{number}", owner="job", cpu="2") for number in range(3)),
            a_policy_document(),
        ]
    )
    files.save(replace(content, source="https://api.example.com"), Path("cluster.json.gz"))
    for name, text in re.findall(r"`(\S+\.yaml)`:\n\n```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL):
        Path(name).write_text(text)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_two_sets_of_policies_side_by_side(form: str) -> None:
    """Evictions, violations and utilisation of each."""
    words = ("cluster.json.gz", "--policies", "eager.yaml", "--against", "calm.yaml", "--until", "2h")
    said = say("replay", *words, "-o", form)

    assert (said.code, said.err) == (0, "")
    check("replay", "side-by-side", form, said.out)


def test_the_example_of_the_page() -> None:
    """The page shows what the command prints."""
    ((command, shown),) = re.findall(r"```console\n\$ plimsoll (.*?)\n(.*?)```", PAGE.read_text(), re.DOTALL)

    assert say(*shlex.split(command)).out == shown


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-file", ("none.json.gz",)),
        ("no-duration", ("cluster.json.gz", "--until", "soon")),
        ("too-long", ("cluster.json.gz", "--until", "999999h")),
        ("no-policy", ("cluster.json.gz", "--policies", "other.yaml")),
        ("bad-policy", ("cluster.json.gz", "--policies", "bad.yaml")),
    ],
)
def test_errors(case: str, words: tuple[str, ...]) -> None:
    """One line that names the file or flag and what to do."""
    Path("other.yaml").write_text(yaml.safe_dump({"kind": "ConfigMap", "metadata": {"name": "x"}}))
    bad = a_policy_document(rebalancing={"strategies": [{"name": "Nope"}]})
    Path("bad.yaml").write_text(yaml.safe_dump(bad))

    said = say("replay", *words)

    assert (said.code, said.out) == (1, "")
    check("replay", case, "error", said.err)


def test_pods_that_never_have_a_place_have_no_wait() -> None:
    """Not one of zero seconds."""
    pod = a_pod_document("big", owner="big", cpu="64")
    files.save(content_of([a_node_document("n1"), pod, a_policy_document()]), Path("full.json.gz"))

    said = say("replay", "full.json.gz", "--until", "1m").out

    assert re.search(r"^pending at the end +1$", said, re.MULTILINE)
    assert re.search(r"^wait until placed, max +<none>$", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("owner", "phase", "name"),
    [
        ("ReplicaSet/web", "Running", "web-r7"),
        ("StatefulSet/db", "Running", "p"),
        ("DaemonSet/agent", "Running", None),
        ("Node/n1", "Running", None),
        ("", "Running", None),
        ("Job/batch", "Succeeded", None),
    ],
)
def test_only_owners_that_replace_a_pod_elsewhere_make_another(
    owner: str, phase: str, name: str | None
) -> None:
    """A DaemonSet's pod belongs to its node, and one that has ended is not missed."""
    found = replacement(the_info(a_pod("p", node="n1", owner=owner, status={"phase": phase})), 7, 0.0)

    assert (None if found is None else found.name) == name


@pytest.mark.parametrize(
    ("until", "seconds"), [("0s", None), ("1s", 1), ("2s", 2), ("8784h", 31_622_400), ("8785h", None)]
)
def test_a_replay_lasts_a_second_at_least_and_a_year_at_most(until: str, seconds: int | None) -> None:
    if seconds is None:
        with pytest.raises(UserError, match="is not between 1s and a year"):
            replay._seconds(until)
    else:
        assert replay._seconds(until) == seconds
