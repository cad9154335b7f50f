"""The state that the host stores for a plugin about a payment or refund, as JSON.

The interfaces `sessions` and `session-refunds` return and receive it.
"""

import json
from typing import Any


def encode(state: Any) -> bytes:
    """Encodes a state, or the data of a notification. The result may have at most 4 KiB."""
    return json.dumps(state).encode()


def decode(data: bytes | None) -> Any:
    """Decodes a state. Returns `None` if there is none, or if it is not JSON."""
    try:
        return None if data is None else json.loads(data)
    except ValueError:
        return None
