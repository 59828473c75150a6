"""A terminal that keeps what is on its screen: as much of one as progress bars and tables need."""

import re
from dataclasses import dataclass, field

#: Text, or a sequence that moves the cursor, erases, or colours.
_PARTS = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])|\x1b[^\[]|(\r|\n|\x08)|([^\x1b\r\n\x08]+)")

#: Classes of the text by SGR code; others are ignored.
COLOURS = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "u", "35": "m", "36": "c", "91": "r"}


@dataclass(slots=True)
class Terminal:
    """Rows of cells, each a character and its class ("" for plain)."""

    rows: list[list[tuple[str, str]]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    style: str = ""

    def write(self, text: str) -> None:
        """Take in what a program has printed."""
        for found in _PARTS.finditer(text):
            arguments, command, control, plain = found.groups()
            if plain is not None:
                self._print(plain)
            elif control is not None:
                self._control(control)
            elif command is not None:
                self._command(command, arguments)

    def screen(self, height: int) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The last rows that are not empty at the end."""
        last = max((place for place, row in enumerate(self.rows) if row), default=0)
        return tuple(tuple(row) for row in self.rows[max(0, last + 1 - height) : last + 1])

    def _print(self, text: str) -> None:
        row = self.rows[self.row]
        row.extend([(" ", "")] * (self.column - len(row)))
        row[self.column : self.column + len(text)] = [(each, self.style) for each in text]
        self.column += len(text)

    def _control(self, control: str) -> None:
        if control == "\n":
            self.row += 1
            if self.row == len(self.rows):
                self.rows.append([])
            self.column = 0
        elif control == "\r":
            self.column = 0
        else:
            self.column = max(0, self.column - 1)

    def _command(self, command: str, arguments: str) -> None:
        count = int(arguments) if arguments.isdigit() else 1
        if command == "A":
            self.row = max(0, self.row - count)
        elif command == "K":
            row = self.rows[self.row]
            del row[0 if arguments == "2" else self.column :]
        elif command == "J":
            del self.rows[self.row + 1 :]
            del self.rows[self.row][self.column :]
        elif command == "m":
            codes = arguments.split(";")
            self.style = "" if codes in ([""], ["0"]) else self._styled(codes)

    def _styled(self, codes: list[str]) -> str:
        kept = set() if "0" in codes else set(self.style.split())
        return " ".join(sorted(kept | {COLOURS[each] for each in codes if each in COLOURS}))
