"""Formats amounts of resources as Kubernetes quantities, never rounded below the amount."""

_BYTES = ("memory", "ephemeral-storage")


def amount_text(resource: str, amount: int) -> str:
    """An amount in the resource's unit (cpu in milli, memory and storage in bytes) as a short quantity.

    Bytes are rounded up to a tenth of the largest binary unit that they reach.
    """
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if resource not in _BYTES and not resource.startswith("hugepages-"):
        return str(amount)
    for power, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if amount >= 1 << power:
            tenths = -(-amount * 10 // (1 << power))
            return f"{tenths / 10:g}{suffix}" if tenths < 10_000 else f"{-(-tenths // 10)}{suffix}"
    return str(amount)
