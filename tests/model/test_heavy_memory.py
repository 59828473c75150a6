"""The arenas of Python hold nothing of a large object, which then goes back to the system as it goes."""

import subprocess
import sys

import pytest

#: Prints whether many small objects lay in arenas, by ``sys._debugmallocstats``, or were seen by a tracer.
SCRIPT = """
import os, re, sys, tempfile, tracemalloc
from plimsoll.model import heavy_memory
from plimsoll.model.heavy_memory import apart

def in_use():
    if tracemalloc.is_tracing():
        return tracemalloc.get_traced_memory()[0]
    with tempfile.TemporaryFile() as file:
        usual = os.dup(2); os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(usual, 2); os.close(usual); file.seek(0)
        found = re.search(rb"# bytes in allocated blocks *= *([\\d,]+)", file.read())[1]
    return int(found.replace(b",", b""))

def say(what, is_heavy):
    before = in_use()
    with apart(is_heavy):
        names = [str(number) * 3 for number in range(50_000)]
        with apart(is_heavy):
            names += [[name] for name in names]
    print(f"{what}:", in_use() - before > 5_000_000)
    for each in names[50_000::2]:
        each.extend(names[:9])  # resized, and freed, in the other state
    if not is_heavy:
        with apart(True):
            del names[:]

say("not used", is_heavy=True)
print("possible:", heavy_memory.use(), heavy_memory.use())
say("small", is_heavy=False)
say("large", is_heavy=True)
try:
    with apart(True):
        raise LookupError
except LookupError:
    say("small, after an error", is_heavy=False)
say("large once more", is_heavy=True)
tracemalloc.start()
say("large, traced", is_heavy=True)
"""


def test_a_large_object_lies_in_no_arena() -> None:
    """Blocks may nest, and end by an error; a tracer of memory goes on."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)

    assert dict(line.split(": ") for line in done.stdout.splitlines()) == {
        "not used": "True",
        "possible": "True True",
        "small": "True",
        "large": "False",
        "small, after an error": "True",
        "large once more": "False",
        "large, traced": "True",
    }


@pytest.mark.parametrize("choice", ["malloc", "pymalloc_debug"])
def test_an_allocator_that_the_environment_chooses_is_left_alone(choice: str) -> None:
    """It may not free what another one has made."""
    source = "from plimsoll.model import heavy_memory; print(heavy_memory.use())"
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONMALLOC": choice},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False\n"
