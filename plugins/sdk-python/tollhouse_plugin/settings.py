"""What the operator set for this plugin and these credentials; not secret."""

from wit_world.imports import settings as wire

from . import faults, http


def get(name: str, default: str = "") -> str:
    """A setting, or the manifest's default for it, or else `default`."""
    value = wire.get(name)
    return default if value is None else value


def required(name: str) -> str:
    """A setting that must be there: `misconfigured` when it is absent or empty."""
    value = get(name)
    if not value:
        raise faults.misconfigured(f"the setting {name} is missing")
    return value


def url(name: str, path: str) -> str:
    """The base URL that a setting holds, with `path` behind it and one slash between the two."""
    return http.join(required(name), path)
