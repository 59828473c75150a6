"""``python -m plimsoll``: the same as the console script."""

from plimsoll.commands.program import main

main()
