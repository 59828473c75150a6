"""Records the demo as an SVG that plays: ``python -m pictures.recorder docs/pictures/demo.svg``.

The demo runs in a pseudo-terminal of 80 columns. What is on the screen is kept whenever it has changed, at
most once a second; pauses are shortened. Readers who want less motion see the last screen.
"""

import codecs
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from pictures.terminal import Terminal

COLUMNS, HEIGHT = 80, 32

#: Seconds between two frames, the shown seconds of a frame at most and of the last one, and frames.
EVERY_S, LONGEST_S, LAST_S, FRAMES = 1.0, 1.5, 6.0, 36

STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#d6dde4;white-space:pre}"
    ".b{font-weight:bold}.d{fill:#93a1ad}.r{fill:#ff8f8f}.g{fill:#7ddf8a}.y{fill:#e8c468}.u{fill:#79b8ff}"
    ".m{fill:#e39bea}.c{fill:#74d7de}.f{visibility:hidden;animation-timing-function:step-end;"
    "animation-iteration-count:infinite}@media(prefers-reduced-motion:reduce){.f{animation:none!important}"
    ".l{visibility:visible}}"
)
ROW = 15

DESCRIPTION = (
    '<desc id="d">A cluster is made and filled, drifts out of balance, and is mended by verified moves;'
    " tables show nodes before and after.</desc>"
)

Frame = tuple[tuple[tuple[str, str], ...], ...]


def recorded(*command: str) -> Iterator[tuple[float, Frame]]:
    """Run a command, and yield each screen with the seconds since the beginning."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(HEIGHT + 8), "TERM": "xterm-256color"}
    process = subprocess.Popen(  # noqa: S603 - the demo
        command, stdout=theirs, stderr=theirs, env={**os.environ, **size}
    )
    os.close(theirs)
    terminal, began, due = Terminal(), time.monotonic(), 0.0
    last: Frame = ()
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        readable, _, _ = select.select([ours], [], [], 0.2)
        try:
            data = os.read(ours, 65_536) if readable else b""
        except OSError:  # the program has ended
            break
        terminal.write(decoder.decode(data))
        at = time.monotonic() - began
        screen = terminal.screen(HEIGHT)
        if at >= due and screen != last:
            due, last = at + EVERY_S, screen
            yield at, screen
    process.wait()
    yield time.monotonic() - began, terminal.screen(HEIGHT)


def played(frames: Sequence[tuple[float, Frame]]) -> str:
    """Returns frames as an SVG that shows one after the other, for ever."""
    chosen = [*frames[:: max(1, -(-len(frames) // FRAMES))], frames[-1]]
    following = [*(at for at, _ in chosen[1:]), chosen[-1][0] + LAST_S]
    shown_s = [min(LONGEST_S, after - at) for (at, _), after in zip(chosen, following, strict=True)]
    shown_s[-1] = LAST_S
    whole, at, style, groups = sum(shown_s), 0.0, [STYLE], []
    for number, ((_, screen), seconds) in enumerate(zip(chosen, shown_s, strict=True)):
        begin, end = 100 * at / whole, 100 * (at + seconds) / whole
        hidden = "" if number == 0 else "0%{visibility:hidden}"
        closing = "" if number == len(chosen) - 1 else f"{end:.2f}%{{visibility:hidden}}"
        style.append(f"@keyframes k{number}{{{hidden}{begin:.2f}%{{visibility:visible}}{closing}}}")
        style.append(f".k{number}{{animation-name:k{number};animation-duration:{whole:.1f}s}}")
        last = " l" if number == len(chosen) - 1 else ""
        groups.append(f'<g class="f k{number}{last}">{"".join(_rows(screen))}</g>')
        at += seconds
    high = ROW * HEIGHT + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {high}" width="600" height="{high}"'
    lines = [
        f'{head} role="img" aria-labelledby="t d"><title id="t">The demo, recorded</title>{DESCRIPTION}',
        f"<style>{''.join(style)}</style>",
        f'<rect width="600" height="{high}" rx="6" fill="#10151b"/>',
        *groups,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _rows(screen: Frame) -> Iterator[str]:
    for place, row in enumerate(screen):
        runs = []
        for style, cells in groupby(row, key=lambda cell: cell[1]):
            text = escape("".join(character for character, _ in cells))
            runs.append(f'<tspan class="{style}">{text}</tspan>' if style else text)
        if "".join(runs).strip():
            yield f'<text x="10" y="{20 + ROW * place}">{"".join(runs)}</text>'


if __name__ == "__main__":
    found = list(recorded(sys.executable, "-m", "demo", "--nodes", "24"))
    Path(sys.argv[1]).write_text(played(found), encoding="utf-8")
