"""Holds docs/support.md against CI and charts, and all pages against wheels of ours from an index."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from deploy.tools import ROOT, tool
from release import wheels

SUPPORT = (ROOT / "docs/support.md").read_text(encoding="utf-8")
#: Each minor version of Kubernetes, and the image of the CI job, as the page has them.
CLAIMED = dict(re.findall(r"^\| (1\.\d+) \|.*\| `kindest/node:v([\d.]+)` \|$", SUPPORT, re.MULTILINE))


def jobs() -> dict[str, Any]:
    """Of the workflow ci."""
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return found


def test_each_claimed_kubernetes_is_a_job_and_each_job_is_claimed() -> None:
    """By the same patch version, pinned by digest; no minor version is left out."""
    tried = jobs()["control-plane"]["strategy"]["matrix"]["include"]
    images = [re.fullmatch(r"v([\d.]+)@sha256:[0-9a-f]{64}", each["kubernetes"]) for each in tried]
    minors = [int(each.partition(".")[2]) for each in CLAIMED]

    assert [each and each[1] for each in images] == [*CLAIMED.values()]
    assert minors == [*range(minors[0], minors[-1] + 1)]
    assert all(patch.startswith(f"{minor}.") for minor, patch in CLAIMED.items())


def test_other_pages_and_the_charts_claim_the_same() -> None:
    """README and docs/install.md the whole range, the charts its lower end; no page says "or newer"."""
    oldest, *_, newest = CLAIMED
    for page in ("README.md", "docs/install.md"):
        assert re.findall(r"\[Kubernetes (1\.\d+) to (1\.\d+)\]", (ROOT / page).read_text()) == [
            (oldest, newest)
        ]
    for chart in ("chart", "crds-chart"):
        stated = yaml.safe_load((ROOT / "deploy" / chart / "Chart.yaml").read_text(encoding="utf-8"))
        assert stated["kubeVersion"] == f">={oldest}.0-0"
    assert not re.search(
        r"Kubernetes 1\.3\d or newer", "".join(page.read_text() for page in ROOT.glob("docs/*.md"))
    )


def test_each_claimed_python_is_a_job() -> None:
    """From the oldest that the packages take."""
    (claimed,) = re.findall(r"^\| Python, outside the image \| ([\d., ]+) \(", SUPPORT, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert claimed.split(", ") == jobs()["presubmit"]["strategy"]["matrix"]["python"]
    assert project["requires-python"] == f">={claimed.split(', ')[0]}"


def test_helm_is_the_version_that_is_claimed() -> None:
    """That of ``make tools``, by which tests install the charts."""
    (claimed,) = re.findall(r"^\| Helm \| ([\d.]+),", SUPPORT, re.MULTILINE)
    said = subprocess.run([tool("helm"), "version", "--short"], capture_output=True, text=True, check=True)

    assert said.stdout.startswith(f"v{claimed}.")


@pytest.mark.parametrize("page", ["SECURITY.md", "ADOPTERS.md", "CONTRIBUTING.md", "docs/how-to/upgrade.md"])
def test_the_page_leads_to_whom_to_tell(page: str) -> None:
    """A contact for weaknesses, who uses it, what a version promises, the way up and back."""
    assert (ROOT / page).is_file()
    assert re.search(rf"\]\((\.\./)?{re.escape(page.removeprefix('docs/'))}(#[a-z-]+)?\)", SUPPORT)


def told() -> list[str]:
    """Files of the repository with sentences for users."""
    kinds = ("*.md", "*.py", "*.yaml", "*.yml", "*.toml", ":!tests")
    listed = subprocess.run(["git", "ls-files", *kinds], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.split()


def test_definitions_are_applied_in_one_way() -> None:
    """By the server: kubectl by itself keeps a copy in an annotation, which has a maximum size."""
    by_kubectl = re.compile(
        r"crds \| kubectl apply (?!--server-side)|kubectl apply (?!--server-side)\S* *crds/"
    )

    found = {each for each in told() if by_kubectl.search((ROOT / each).read_text(encoding="utf-8"))}

    assert found == set()
    assert by_kubectl.search("plimsoll crds | kubectl apply -f -")
    assert by_kubectl.search("kubectl apply -f crds/")


def test_nothing_of_ours_is_installed_from_an_index() -> None:
    """Indexes have projects of others with such names: neither pages nor messages name one to pip."""
    projects = [ROOT / each / "pyproject.toml" for each in wheels.PROJECTS]
    names = {tomllib.loads(each.read_text())["project"]["name"] for each in projects}
    for_pip = re.compile(rf"pip install [^`\n]*(?<![\w/.,{{-])({'|'.join(map(re.escape, names))})(?![\w./-])")
    excused = {"docs/adr/0050-three-front-doors.md", "docs/adr/0060-publishing.md", "docs/install.md"}

    found = {
        each for each in {*told()} - excused if for_pip.search((ROOT / each).read_text(encoding="utf-8"))
    }

    assert len(names) == len(wheels.PROJECTS)
    assert found == set()
    assert for_pip.search("$ pip install --find-links dist 'plimsoll[demo]'")
    assert for_pip.search("pip install plimsoll-testing")
    assert not for_pip.search("pip install dist/{plimsoll_core,plimsoll}-*.whl")
