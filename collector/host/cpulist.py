"""Lists of CPUs as the kernel writes them: `0-3,8-11`. Format: Documentation/admin-guide/cputopology.rst."""


def cpus_of(text: str) -> frozenset[int]:
    """Return the CPUs of a list; none for an empty one. Raises ValueError for a text that is no list."""
    found: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)
