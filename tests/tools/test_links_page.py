"""docs/reference/links.md: every address outside, well formed, with the pages that name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages.links import PAGE, links, malformed, page


def test_the_page_lists_what_pages_name() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(links()), "run `make docs`"


def test_an_address_is_https_of_a_public_host() -> None:
    assert malformed("https://kubernetes.io/docs/") == ""
    assert malformed("http://kubernetes.io/") == "is not https"
    assert malformed("https://localhost/x") != ""
    assert malformed("https://a.b:8443/x") != ""
    assert malformed("https://me@a.b/x") != ""
    assert malformed("https://a.b/ä") != ""
    with pytest.raises(ValueError, match=r"http://a\.b in x\.md is not https"):
        page({"http://a.b": [Path("x.md")]})
