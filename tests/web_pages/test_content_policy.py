"""The content policy of pages: their own style and script, by digest."""

from plimsoll.pages.page_parts import content_policy


def test_style_and_script_are_allowed_by_their_digests() -> None:
    """The digests are those of ``openssl dgst -sha256 -binary | base64``."""
    parts = content_policy("", "abc").split("; ")

    assert parts[-2:] == [
        "style-src 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='",
        "script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='",
    ]
    assert content_policy("", "abc", "").split("; ")[-1] == (
        "script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='"
        " 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    )
