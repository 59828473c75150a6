"""A site of several versions: its folders, and the list in the sidebar."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from packaging.version import InvalidVersion
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from web_pages.browser import a_browser, assert_nothing_serious, needs_chromium, opened
from website.published import publish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "tools/website/static"
WORKFLOW = ROOT / ".github/workflows/release.yml"
#: As much of a page as the script reads; the colours are those of the site.
PAGE = """<!doctype html><html lang="en" data-content_root="{root}"><title>t</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{root}_static/tokens.css"><link rel="stylesheet" href="{root}_static/narrow.css">
<script type="module" src="{root}_static/versions.js"></script>
<body style="background: var(--color-background-primary); color: var(--color-foreground-primary)">
<nav aria-label="site"><style>a {{ color: var(--color-brand-content) }}</style>
<a class="sidebar-brand" href="{root}index.html">Plimsoll</a></nav><main><h1>{name}</h1></main></html>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and writes nothing."""

    def log_message(self, *_: object) -> None:
        """Tests have no log of requests."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on loopback, below a path as GitHub's pages are."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/plimsoll"
        server.shutdown()


def a_site(folder: Path, *pages: str) -> Path:
    """A site with these pages besides its start."""
    for name in ("index.html", *pages):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        root = "../" * name.count("/") or "./"
        (folder / name).write_text(PAGE.format(root=root, name=name), encoding="utf-8")
    (folder / "_static").mkdir()
    for name in ("versions.js", "narrow.css", "tokens.css"):
        (folder / "_static" / name).write_bytes((STATIC / name).read_bytes())
    return folder


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """0.9.0, and 0.10.0 with a page more."""
    publish(a_site(tmp_path / "old", "cli/plan.html"), tmp_path / "plimsoll", "0.9.0")
    publish(a_site(tmp_path / "new", "cli/plan.html", "cli/new.html"), tmp_path / "plimsoll", "0.10.0")
    return tmp_path


def summary(driver: Chrome) -> WebElement:
    """What opens the list, as soon as it is there."""
    return WebDriverWait(driver, 30).until(
        lambda each: each.find_element("css selector", ".versions summary")
    )


def taken_by_keys(driver: Chrome, version: str) -> None:
    """Open the list and take a version, by the keyboard alone."""
    opening = summary(driver)
    opening.send_keys(Keys.ENTER)
    (link,) = [each for each in driver.find_elements("css selector", ".versions a") if each.text == version]
    link.send_keys(Keys.ENTER)
    WebDriverWait(driver, 30).until(lambda each: f"/{version}/" in each.current_url)


def test_the_list_is_in_the_order_of_versions(two: Path) -> None:
    """Not of letters; a candidate is listed and not led to, and a version comes again in place of itself."""
    folder = two / "plimsoll"
    publish(a_site(two / "next"), folder, "0.11.0rc1")
    (folder / "pictures").mkdir()
    publish(a_site(two / "again", "a.html"), folder, "0.9.0")

    assert (folder / "versions.json").read_text() == '["0.11.0rc1", "0.10.0", "0.9.0"]\n'
    assert 'url=0.10.0/"' in (folder / "index.html").read_text()
    assert (folder / "0.9.0/a.html").is_file()
    assert not (folder / "0.9.0/cli").exists()


def test_what_is_not_a_version_writes_nothing(tmp_path: Path) -> None:
    """As ``..``, whose folder would be deleted."""
    site = a_site(tmp_path / "site")
    with pytest.raises(InvalidVersion):
        publish(site, tmp_path / "plimsoll", "..")

    assert site.is_dir()


def test_a_release_keeps_the_pages_of_those_before(tmp_path: Path) -> None:
    """What the workflow runs, with a repository in a folder as GitHub; once more changes nothing."""
    steps = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]["site"]["steps"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/gh").symlink_to("/bin/true")
    repository = ["git", "-C", str(tmp_path / "us/plimsoll")]
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "us/plimsoll")], check=True)

    for version, page in (("0.9.0", "old.html"), ("0.10.0", "new.html"), ("0.10.0", "new.html")):
        checkout = Path(tempfile.mkdtemp(dir=tmp_path))
        for shared in (".venv", "tools"):
            (checkout / shared).symlink_to(ROOT / shared)
        a_site(checkout / "build/site", page)
        env = {
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
            "GITHUB_SERVER_URL": f"file://{tmp_path}",
            "GITHUB_REPOSITORY": "us/plimsoll",
            "GITHUB_REF_NAME": f"v{version}",
        }
        subprocess.run(["bash", "-e", "-c", steps[-1]["run"]], cwd=checkout, env=env, check=True)

    listed = subprocess.check_output([*repository, "ls-tree", "-r", "--name-only", "pages"], text=True)
    assert {"0.9.0/old.html", "0.10.0/new.html", "versions.json", ".nojekyll"} <= {*listed.split()}
    assert subprocess.check_output([*repository, "rev-list", "--count", "pages"], text=True) == "2\n"


@needs_chromium
def test_a_reader_changes_the_version_by_keys(two: Path) -> None:
    """She stays on her page and section; where the other version has no such page, she gets its start."""
    with served(two) as address, a_browser() as driver:
        opened(driver, f"{address}/0.9.0/cli/plan.html?x=1#there")
        taken_by_keys(driver, "0.10.0")
        assert driver.current_url == f"{address}/0.10.0/cli/plan.html?x=1#there"

        opened(driver, f"{address}/0.10.0/cli/new.html")
        taken_by_keys(driver, "0.9.0")
        assert driver.current_url == f"{address}/0.9.0/"

        opening = summary(driver)
        assert (opening.text, opening.accessible_name) == ("Version 0.9.0", "Version 0.9.0")
        opening.send_keys(Keys.ENTER)
        own = driver.find_element("css selector", ".versions a[aria-current]")
        assert own.text == "0.9.0"
        assert_nothing_serious(driver)
        own.send_keys(Keys.ESCAPE)
        assert driver.switch_to.active_element == opening
        assert not own.is_displayed()


@needs_chromium
@pytest.mark.parametrize("listed", [None, '["0.9.0"]', '["0.10.0", "0.11.0"]', "<html>"])
def test_without_another_version_nothing_is_shown(tmp_path: Path, listed: str | None) -> None:
    """No list, one version, a list without this one, an answer that is no list."""
    a_site(tmp_path / "plimsoll/0.9.0")
    if listed:
        (tmp_path / "plimsoll/versions.json").write_text(listed, encoding="utf-8")
    with served(tmp_path) as address, a_browser() as driver:
        opened(driver, f"{address}/0.9.0/index.html")
        settled = "const done = arguments[0]; setTimeout(done, 300)"
        driver.execute_async_script(settled)

        assert driver.find_elements("css selector", ".versions") == []
