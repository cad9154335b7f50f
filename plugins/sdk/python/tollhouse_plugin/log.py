"""Log lines for operators.

They must never contain a secret or personal data; the host removes the secrets that it knows.
"""

from wit_world.imports import log as wire


def debug(message: str) -> None:
    """Logs details that help the plugin's author to debug."""
    wire.write(wire.Level.DEBUG, message)


def info(message: str) -> None:
    """Logs a noteworthy event."""
    wire.write(wire.Level.INFO, message)


def warn(message: str) -> None:
    """Logs a problem that may need attention."""
    wire.write(wire.Level.WARN, message)


def error(message: str) -> None:
    """Logs a problem that an operator must resolve."""
    wire.write(wire.Level.ERROR, message)
