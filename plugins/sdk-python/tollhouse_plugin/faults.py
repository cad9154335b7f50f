"""Short ways to say why a call could not be answered: `raise faults.not_found(...)`.

Messages go through `text.short`, so that an upstream's own words may be handed on.
"""

from componentize_py_types import Err
from wit_world.imports.types import Fault, FaultCategory

from . import text


def invalid(field: str, message: str) -> Err[Fault]:
    """The request as given cannot be served; `field` is to blame."""
    fault = _fault(FaultCategory.INVALID, message)
    fault.value.details.append(("field", field))
    return fault


def refused(code: str, message: str) -> Err[Fault]:
    """The upstream understood and said no."""
    return _fault(FaultCategory.REFUSED, message, code)


def not_found(message: str) -> Err[Fault]:
    """The upstream knows of no such thing."""
    return _fault(FaultCategory.NOT_FOUND, message)


def unavailable(message: str, code: str = "") -> Err[Fault]:
    """The upstream is out of order; the same call may succeed later."""
    return _fault(FaultCategory.UNAVAILABLE, message, code)


def misconfigured(message: str, code: str = "") -> Err[Fault]:
    """A setting or a secret is missing or wrong."""
    return _fault(FaultCategory.MISCONFIGURED, message, code)


def other(message: str, code: str = "") -> Err[Fault]:
    """None of the above."""
    return _fault(FaultCategory.OTHER, message, code)


def _fault(category: FaultCategory, message: str, code: str = "") -> Err[Fault]:
    retryable = category is FaultCategory.UNAVAILABLE
    return Err(Fault(category, text.code(code), text.short(message), retryable, []))
