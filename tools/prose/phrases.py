"""Banned phrases with a suggestion for each; a space in a pattern matches a line break as well."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BE = "(?:is|are|was|were|be|been|being)"
_TELL = "(?:tell|tells|told|telling)"
_ASK = "(?:ask|asks|asked|asking)"
_HAVE = "(?:has|have|had|having)"
#: Words after which "by name" says how something is ordered or found, which is plain English.
_ORDERED = re.compile(
    r"\b(?:sort|order|rank|look|find|found|fetch|get|key|index|list|import|tie|match|select|address|identif|group|"
    r"resolv|map|dict|table|argument|parameter|pass|handed|refer|load|delet|merg|label)\w*(?:\s+[\w'`*]+){0,4},?\s+$",
    re.IGNORECASE,
)
#: Characters before a match in which a word may excuse it.
_BEFORE = 60


@dataclass(frozen=True, slots=True)
class Phrase:
    """A banned phrase.

    Attributes:
        name: how finds and exceptions call it.
        pattern: what matches it.
        instead: what to write.
        unless: excuses a match when it matches the text that ends where the match begins.
    """

    name: str
    pattern: re.Pattern[str]
    instead: str
    unless: re.Pattern[str] | None = None

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """The occurrences in a text."""
        for match in self.pattern.finditer(text):
            before = text[max(0, match.start() - _BEFORE) : match.start()]
            if self.unless is None or not self.unless.search(before):
                yield match


def _phrase(
    name: str, pattern: str, instead: str, *, cased: bool = False, unless: re.Pattern[str] | None = None
) -> Phrase:
    flags = re.NOFLAG if cased else re.IGNORECASE
    return Phrase(name, re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), flags), instead, unless)


PHRASES = (
    _phrase("asks of", f"{_ASK} of", "requires, expects; or name the question"),
    _phrase("told of", f"{_TELL} of", "is notified of, receives, reports"),
    _phrase("is told", f"{_BE} told", "receives, reads, is notified, is passed"),
    _phrase("anew", "anew", "again"),
    _phrase("beside", "beside", "next to, in addition to, concurrently with"),
    _phrase("in thought", "in thought", "hypothetically, on a fork, in the calculation"),
    _phrase("whoever", "whoever|whomever|whosoever", "name the component or the role"),
    _phrase("nobody", "nobody|no-one|no one", "name what does not happen: no caller, no watcher, nothing"),
    _phrase("comes to nothing", "(?:come|comes|came|coming) to nothing", "fails, has no effect, is dropped"),
    _phrase("comes to rest", "(?:come|comes|came|coming) to rest", "converges"),
    _phrase("stands for", "(?:stand|stands|stood|standing) for", "means, represents"),
    _phrase("at once", "at once", "immediately; simultaneously"),
    _phrase("the like", "(?:the|its|their) likes?", "similar, such as, and so on"),
    _phrase("as ever", "as ever", "as before, unchanged"),
    _phrase("for good", "for good(?! (?:reason|measure|or bad))", "permanently"),
    _phrase("makes light of", "(?:make|makes|made|making) light of", "ignores, relaxes"),
    _phrase("is none", f"{_BE} none", "is not a …; does not exist", cased=True),
    _phrase("has turn", f"{_HAVE} (?:its |their |his |a |the )?turn", "runs next; is scheduled"),
    _phrase("dice", "dice", "random numbers, jitter"),
    _phrase("by name", "by name", "named; sort, look up, key by name is allowed", unless=_ORDERED),
)

_ANY = re.compile("|".join(f"(?:{phrase.pattern.pattern})" for phrase in PHRASES), re.IGNORECASE)


def banned_in(text: str) -> Iterator[tuple[Phrase, re.Match[str]]]:
    """The banned phrases of a text."""
    if _ANY.search(text):
        for phrase in PHRASES:
            for match in phrase.matches(text):
                yield phrase, match
