"""Writes the wire format of Protocol Buffers: numbers, and fields of a length-delimited type."""

#: The wire type of a field whose length comes before it.
BYTES = 2


def varint(value: int) -> bytes:
    """A number that is not negative, seven bits a byte."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def sized(number: int, data: bytes) -> bytes:
    """A field of a length-delimited type: bytes, text, or another message."""
    return varint(number << 3 | BYTES) + varint(len(data)) + data
