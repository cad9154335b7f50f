"""The error of all operations."""

import re

# Matches `the amount field must be greater than 0`, after `row 3: ` in a batch.
_INVALID_FIELD = re.compile(r"(?:row \d+: )?the (\S+) field (.+)")


class TollhouseError(Exception):
    """A request that failed: the host rejected it, or no attempt got a response."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        request_id: str | None = None,
        retry_after_s: int | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        super().__init__(message)
        invalid = _INVALID_FIELD.fullmatch(message)
        self.message = message
        self.status = status
        """The HTTP status; 0 without a response."""
        self.fields: dict[str, str] = {invalid[1]: invalid[2]} if invalid else {}
        """Errors by field: `{"amount": "must be greater than 0"}`. The host reports only one."""
        self.request_id = request_id
        """The id of the last attempt in the logs of the host."""
        self.retry_after_s = retry_after_s
        """Seconds after which the host permits another attempt."""
        self.idempotency_key = idempotency_key
        """The key of a change. If its outcome is unknown, repeat the request with the same key."""
