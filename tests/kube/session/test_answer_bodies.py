"""Lines of a watch, cut anywhere by the network."""

from collections.abc import AsyncIterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube.session.answer_bodies import lines


@given(st.lists(st.binary(max_size=3).filter(lambda each: b"\n" not in each)), st.lists(st.integers(0, 40)))
async def test_lines_are_whole_wherever_the_body_is_cut(whole: list[bytes], cuts: list[int]) -> None:
    """Each arrives once and in order, without empty ones; the last needs its end."""
    body = b"".join(each + b"\n" for each in whole) + b"unended"
    ends = sorted({0, len(body), *(cut for cut in cuts if cut < len(body))})

    async def chunks() -> AsyncIterator[bytes]:
        for begin, end in pairwise(ends):
            yield body[begin:end]

    batches = [batch async for batch in lines(chunks())]

    assert [each for batch in batches for each in batch] == [each for each in whole if each]
