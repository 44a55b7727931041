"""How much the fast tests try of what `make test-all` tries in full."""

#: Whether slow tests are left out; conftest.py finds out.
is_fast = False


def some(n: int) -> int:
    """Of n random cases all, or a quarter where tests are to be fast."""
    return -(-n // 4) if is_fast else n
