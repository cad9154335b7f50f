"""A cache of short-lived values, such as access tokens.

The host keeps it per plugin and set of credentials.
"""

from wit_world.imports import cache as wire


def get(key: str) -> str | None:
    """Returns a cached value unless it has expired."""
    return wire.get(key)


def put(key: str, value: str, ttl_seconds: int) -> None:
    """Caches a value for at most `ttl_seconds`."""
    wire.put(key, value, ttl_seconds)
