"""A cache of short-lived values, for example access tokens.

Each host keeps it in memory, per component and account.
"""

from wit_world.imports import cache as wire


def get(key: str) -> str | None:
    """Returns a cached value unless it has expired."""
    return wire.get(key)


def put(key: str, value: str, ttl_seconds: int) -> None:
    """Caches a value for at most `ttl_seconds`."""
    wire.put(key, value, ttl_seconds)
