"""``python -m plimsoll``: the same as the console script."""

from plimsoll.cli import main

main()
