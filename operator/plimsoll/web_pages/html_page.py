"""Renders a page from a template with embedded style and script, and a policy that allows only these.

Source: Content Security Policy Level 3, hash sources (https://www.w3.org/TR/CSP3/).
"""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from plimsoll import __version__


def rendered(template: str, content: Mapping[str, object]) -> str:
    """Render a page in one HTML file, with the policy in its head.

    Args:
        template: Name of the template in ``plimsoll/web_pages/templates``.
        content: Its content; text is escaped.
    """
    style, script = _read("report.css"), _read("report.js") + _read("tiles.js")
    own = {"version": __version__, "policy": _policy(style, script), "style": style, "script": script}
    return _environment().get_template(template).render(**own, **content)


@cache
def live_page() -> tuple[str, str]:
    """The page of a running operator, and its policy header; the page requests only its own server."""
    style, script = _read("report.css") + _read("live.css"), _read("live.js") + _read("tiles.js")
    text = _environment().get_template("live.html").render(version=__version__, style=style, script=script)
    return text, f"{_policy(style, script)}; connect-src 'self'; frame-ancestors 'none'"


def _policy(style: str, script: str) -> str:
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("plimsoll.web_pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _read(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text("utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
