"""Faults of a call, as exceptions: `raise faults.not_found(...)`.

Messages pass through `text.short`, so a plugin may forward an upstream's message.
"""

from componentize_py_types import Err
from wit_world.imports.types import Fault, FaultCategory

from . import text


def invalid(field: str, message: str) -> Err[Fault]:
    """`invalid`: the request cannot be served as given, because of `field`."""
    fault = _fault(FaultCategory.INVALID, message)
    fault.value.details.append(("field", field))
    return fault


def refused(code: str, message: str) -> Err[Fault]:
    """`refused`: the upstream refused the request."""
    return _fault(FaultCategory.REFUSED, message, code)


def not_found(message: str) -> Err[Fault]:
    """`not-found`: the upstream does not have the requested object."""
    return _fault(FaultCategory.NOT_FOUND, message)


def because(fault: Err[Fault], cause: str, limit: int | None = None) -> Err[Fault]:
    """Adds the cause of a rejected payment, for which the host composes the message to clients.

    `limit` is the limit that an amount violates, in the currency's minor unit.
    """
    fault.value.details.append(("cause", cause))
    if limit is not None:
        fault.value.details.append(("limit", str(limit)))
    return fault


def unavailable(message: str, code: str = "") -> Err[Fault]:
    """`unavailable`: the upstream is out of order; the same call may succeed later."""
    return _fault(FaultCategory.UNAVAILABLE, message, code)


def misconfigured(message: str, code: str = "") -> Err[Fault]:
    """`misconfigured`: a setting or a secret is missing or wrong."""
    return _fault(FaultCategory.MISCONFIGURED, message, code)


def other(message: str, code: str = "") -> Err[Fault]:
    """`other`: any other fault."""
    return _fault(FaultCategory.OTHER, message, code)


def _fault(category: FaultCategory, message: str, code: str = "") -> Err[Fault]:
    retryable = category is FaultCategory.UNAVAILABLE
    return Err(Fault(category, text.code(code), text.short(message), retryable, []))
