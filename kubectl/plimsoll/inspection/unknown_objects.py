"""The error for the name of an object that the cluster does not have."""

from difflib import get_close_matches

from plimsoll.framework.errors import PlimsollError


class UnknownObjectError(PlimsollError):
    """The cluster has no such object; the sentence lists similar names."""

    def __init__(self, kind: str, name: str, known: list[str]) -> None:
        super().__init__(kind, name)
        self.kind, self.name = kind, name
        namespace, _, short = name.rpartition("/")
        names = {each.rpartition("/")[2]: each for each in known if each.rpartition("/")[0] == namespace}
        elsewhere = sorted(each for each in known if each.rpartition("/")[2] == short)
        self.similar = elsewhere[:3] or [names[each] for each in get_close_matches(short, names, 3, 0.6)]

    def __str__(self) -> str:
        """The sentence."""
        meant = f"; did you mean {' or '.join(self.similar)}?" if self.similar else ""
        return f'{self.kind} "{self.name}" not found{meant}'
