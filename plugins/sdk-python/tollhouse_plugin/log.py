"""Lines for operators. Never a secret or personal data; the host removes the secrets it knows."""

from wit_world.imports import log as wire


def debug(message: str) -> None:
    """For the author, while something is being looked for."""
    wire.write(wire.Level.DEBUG, message)


def info(message: str) -> None:
    """Worth knowing."""
    wire.write(wire.Level.INFO, message)


def warn(message: str) -> None:
    """Worth a look."""
    wire.write(wire.Level.WARN, message)


def error(message: str) -> None:
    """Somebody must act."""
    wire.write(wire.Level.ERROR, message)
