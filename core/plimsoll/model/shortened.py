"""Cuts texts that come from elsewhere, so that what is said of them stays short."""


def shortened(text: str, longest: int) -> str:
    """A text of at most ``longest`` characters, and an ellipsis if it has more."""
    return text if len(text) <= longest else f"{text[:longest]}…"
