"""``plimsoll convert`` as users see it, and the words of kubectl that lead to it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from click.testing import CliRunner

from cli.commands import Said, say
from cli.golden_files import check
from migration.checks import CHECKS, PLUGINS
from plimsoll.cli.views.convert import report_lines
from plimsoll.commands.program import app
from plimsoll.migration.conversion import convert_documents
from plimsoll.migration.documents import read_documents

if TYPE_CHECKING:
    from roadstead.pytest_plugin import StartRoadstead

ROOT = Path(__file__).parents[2]
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictPerNode: 5
profiles:
- name: default
  pluginConfig:
  - {name: DefaultEvictor, args: {evictLocalStoragePods: true}}
  - name: RemoveDuplicates
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
SCHEDULER = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 8
"""


def printed(text: str, *words: str) -> Said:
    """What the command prints of a text on stdin."""
    result = CliRunner().invoke(app, ["convert", "-", *words], input=text)
    return Said(result.exit_code, result.stdout, result.stderr)


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml"])
def test_policies_and_report_look_like_this(form: str) -> None:
    """As a table the report is on stderr; for programs both are one document."""
    said = printed(f"{POLICY}---\n{SCHEDULER}", "-o", form)

    assert said.code == 0
    check("convert", "both", form, said.out + said.err)


def test_what_is_kept_is_written_out() -> None:
    """With --keep-behaviour."""
    said = printed(POLICY, "--keep-behaviour")

    check("convert", "kept", "table", said.out + said.err)


def test_the_report_fits_a_terminal_of_80_columns() -> None:
    """Where the table is too wide, each field is an entry of its own; nothing is cut."""
    documents = read_documents("policy.yaml", POLICY.encode())
    converted = convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False)

    lines = list(report_lines(converted, wide=False, width=80))

    assert max(map(len, lines)) <= 80
    assert lines[6:9] == [
        "   7  renamed: profiles[0].pluginConfig[0].args.evictLocalStoragePods",
        "      -> spec.rebalancing.evictor.podProtections.defaultDisabled",
        "      The list disables PodsWithLocalStorage.",
    ]
    text = " ".join(" ".join(lines).split())
    assert all(each.sentence in text for each in converted.report)


def test_the_report_is_a_table_where_the_longest_line_fits() -> None:
    """By one column more or less, and where some of its lines would fit."""
    documents = read_documents("policy.yaml", POLICY.encode())
    converted = convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False)
    table = list(report_lines(converted, wide=False, width=None))
    lengths = sorted({len(line) for line in table})

    tables = [list(report_lines(converted, wide=False, width=width)) == table for width in lengths]

    assert len(lengths) > 2
    assert tables == [False] * (len(lengths) - 1) + [True]


@pytest.mark.parametrize("width", [None, 80])
def test_names_of_a_file_cannot_steer_the_terminal(width: int | None) -> None:
    """They are shown with their control characters escaped."""
    text = POLICY.replace("name: default", 'name: "\\e[31mred"') + '"\\e[31mred": {}\n'
    documents = read_documents("policy.yaml", text.encode())
    converted = convert_documents(documents, CHECKS, PLUGINS, keep_behaviour=False)

    lines = "\n".join(report_lines(converted, wide=True, width=width))

    assert "\x1b" not in lines
    assert lines.count(r"\x1b[31mred") == 2


def test_stdout_has_policies_alone() -> None:
    """So that it can be applied."""
    policies = list(yaml.safe_load_all(printed(f"{POLICY}---\n{SCHEDULER}").out))

    assert [each["kind"] for each in policies] == ["SchedulingPolicy"] * 2


def test_suspended_policies_describe_a_scheduler_that_goes_on() -> None:
    """Each profile is one; without the flag the report says to stop it."""
    profiles = "profiles: [{schedulerName: default-scheduler}, {schedulerName: packing}]"
    document = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

    said, plain = printed(document + profiles, "--suspended"), printed(document + profiles)

    specs = [each["spec"] for each in yaml.safe_load_all(said.out)]
    names = [each["scheduling"]["schedulerName"] for each in specs]
    assert names == ["default-scheduler", "packing"]
    assert [each["suspend"] for each in specs] == [True, True]
    assert all("suspend" not in each["spec"] for each in yaml.safe_load_all(plain.out))
    assert (
        said.err.count("kube-scheduler goes on placing them") == plain.err.count("Stop kube-scheduler's") == 2
    )


def test_several_files_make_policies_with_names_of_their_own(tmp_path: Path) -> None:
    """A name is taken once."""
    (tmp_path / "a.yaml").write_text(POLICY)
    (tmp_path / "b.json").write_text(json.dumps(yaml.safe_load(POLICY)))

    said = say("-o", "json", "convert", str(tmp_path / "a.yaml"), str(tmp_path / "b.json"))

    policies = json.loads(said.out)["policies"]
    assert [each["metadata"]["name"] for each in policies] == ["descheduler", "descheduler-2"]
    assert policies[0]["spec"] == policies[1]["spec"]


@pytest.mark.parametrize(
    ("case", "content"),
    [
        ("truncated", POLICY[:-10].encode() + b'"'),
        ("wrong-version", POLICY.replace("v1alpha2", "v2").encode()),
        ("unknown-kind", b"apiVersion: v1\nkind: Pod\n"),
        ("binary", b"\x1f\x8b\x08\x00"),
        ("wrong-type", POLICY.replace("5", "five").encode()),
    ],
)
def test_an_error_is_one_line_and_prints_no_policy(
    case: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file's name, and exit code 1."""
    monkeypatch.chdir(tmp_path)
    Path("policy.yaml").write_bytes(content)

    said = say("convert", "policy.yaml")

    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1)
    check("convert", case, "error", said.err)


def test_a_file_that_is_missing_is_named() -> None:
    assert say("convert", "none.yaml").err == "error: none.yaml: No such file or directory\n"


def test_the_example_of_the_page_is_what_the_command_prints() -> None:
    """The first block is converted, the second is printed."""
    blocks = (ROOT / "docs" / "cli" / "convert.md").read_text().split("```yaml\n")[1:]
    source, result = (each.partition("```")[0] for each in blocks)

    assert printed(source).out == result


def test_the_pages_have_the_words_that_kubectl_prints(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """Who searches for kubectl's message finds the command."""
    cluster = start_roadstead(nodes=0)
    file = str(tmp_path / "all.yaml")
    Path(file).write_text(f"{POLICY}---\n{SCHEDULER}")
    applied = subprocess.run(
        ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "--validate=false", "-f", file],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    page = (ROOT / "docs" / "cli" / "convert.md").read_text()
    guide = " ".join((ROOT / "docs" / "for-kube-scheduler-users.md").read_text().split())

    words = {line[line.index("no matches") :] for line in applied.stderr.splitlines() if "no matches" in line}

    assert len(words) == 2, applied.stderr
    assert "ensure CRDs are installed first" in applied.stderr
    for each in (*words, "ensure CRDs are installed first"):
        assert each in page
    for each in words:
        assert each in guide
