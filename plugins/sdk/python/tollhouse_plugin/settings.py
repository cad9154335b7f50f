"""Settings of this plugin and provider account, set by the operator. They are not secret."""

from wit_world.imports import settings as wire

from . import faults, http


def get(name: str, default: str = "") -> str:
    """Returns a setting, the manifest's default, or else `default`."""
    value = wire.get(name)
    return default if value is None else value


def required(name: str) -> str:
    """Returns a required setting, or raises `misconfigured` if it is absent or empty."""
    value = get(name)
    if not value:
        raise faults.misconfigured(f"the setting {name} is missing")
    return value


def url(name: str, path: str) -> str:
    """Returns the base URL in a setting, joined to `path` by one slash."""
    return http.join(required(name), path)
