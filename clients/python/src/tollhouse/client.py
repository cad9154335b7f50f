"""Sends requests: idempotency keys, timeouts and retries."""

import random
import re
import time
import uuid
from collections.abc import Mapping
from typing import Any, Self

import httpx

from tollhouse.errors import TollhouseError
from tollhouse.operations import Operations

# The backoff doubles from the first value up to the second; jitter subtracts up to half of it.
_FIRST_BACKOFF_S, _MAX_BACKOFF_S = 0.5, 8.0

# A longer `Retry-After` is left to the caller.
_MAX_RETRY_AFTER_S = 60

# These paths send a one-time password on GET, where the host ignores idempotency keys.
_SENDS_CODE = re.compile(r"/send(-verification)?/")


class Tollhouse(Operations):
    """A client for one company. It adds an `Idempotency-Key` to changes, and retries.

    `base_url` is the address of the host, without `/api/v1`. `max_attempts` includes the first one.
    `timeout_s` limits connecting, sending and each wait for a part of the response.
    """

    def __init__(
        self, *, api_key: str, base_url: str, max_attempts: int = 4, timeout_s: float = 60
    ) -> None:
        super().__init__(self._send)
        self._max_attempts = max_attempts
        self._http = httpx.Client(
            base_url=base_url, headers={"Authorization": f"Bearer {api_key}"}, timeout=timeout_s
        )

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Sends a request until it has an outcome. Returns the `data` of a success, if any."""
        request = self._http.build_request(method, path, params=_flat(query or {}), json=body)
        if method != "GET":
            request.headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        is_repeatable = method != "GET" or not _SENDS_CODE.search(path)

        may_be_running = False
        attempt = 1
        while True:
            try:
                return self._send_once(request).get("data")
            except TollhouseError as error:
                status, retry_after_s = error.status, error.retry_after_s
                can_retry = (
                    status == 429  # had no effect
                    or (is_repeatable and status in (0, 502, 503, 504))
                    or (status == 409 and (may_be_running or retry_after_s is not None))
                )
                is_soon = (retry_after_s or 0) <= _MAX_RETRY_AFTER_S
                if not can_retry or not is_soon or attempt >= self._max_attempts:
                    raise
            # From now on 409 can mean that the host still runs an earlier attempt under this key.
            may_be_running = may_be_running or status not in (409, 429)
            time.sleep(_delay_s(attempt, retry_after_s or 0))
            attempt += 1

    def _send_once(self, request: httpx.Request) -> dict[str, Any]:
        idempotency_key = request.headers.get("Idempotency-Key")
        try:
            response = self._http.send(request)
        except httpx.TransportError as error:
            raise TollhouseError(
                f"no response: {error!r}", idempotency_key=idempotency_key
            ) from error
        try:
            answer = response.json()
        except ValueError:  # from a proxy in front of the host
            answer = None
        if response.is_success and isinstance(answer, dict):
            return answer

        retry_after = response.headers.get("Retry-After", "")
        raise TollhouseError(
            answer["message"]
            if isinstance(answer, dict) and "message" in answer
            else f"the response is {response.status_code} {response.reason_phrase}",
            status=response.status_code,
            request_id=response.headers.get("X-Request-Id"),
            retry_after_s=int(retry_after) if retry_after.isdecimal() else None,
            idempotency_key=idempotency_key,
        )


def _flat(query: Mapping[str, object]) -> dict[str, Any]:
    """Flattens objects: the keys of `metadata`, in a list of users, are parameter names."""
    flat: dict[str, Any] = {}
    for name, value in query.items():
        flat.update(value if isinstance(value, dict) else {name: value})
    return flat


def _delay_s(attempt: int, retry_after_s: int) -> float:
    """Returns `Retry-After` plus the backoff; jitter spreads clients rejected at the same time."""
    backoff_s = min(_FIRST_BACKOFF_S * 2.0 ** (attempt - 1), _MAX_BACKOFF_S)
    return retry_after_s + backoff_s * random.uniform(0.5, 1)
