"""Short-lived values, kept by the host per plugin and set of credentials: an access token, say."""

from wit_world.imports import cache as wire


def get(key: str) -> str | None:
    """A value put earlier, unless its time is over."""
    return wire.get(key)


def put(key: str, value: str, ttl_seconds: int) -> None:
    """Keeps a value for `ttl_seconds` at most."""
    wire.put(key, value, ttl_seconds)
