"""HTTP requests through the host: over HTTPS, to granted hosts only, without redirects."""

import json
from typing import Any, Self
from urllib.parse import quote, urlencode

from componentize_py_types import Err
from wit_world.imports import http as wire
from wit_world.imports.types import Fault

from . import faults


def get(url: str) -> "Request":
    """Creates a GET request."""
    return Request("GET", url)


def post(url: str) -> "Request":
    """Creates a POST request."""
    return Request("POST", url)


def put(url: str) -> "Request":
    """Creates a PUT request."""
    return Request("PUT", url)


def delete(url: str) -> "Request":
    """Creates a DELETE request."""
    return Request("DELETE", url)


class Request:
    """An HTTP request. Header values and the body may contain placeholders from `vault`; the URL
    must not.
    """

    def __init__(self, method: str, url: str) -> None:
        self._wire = wire.Request(method, url, [], None, None)

    def header(self, name: str, value: str) -> Self:
        """Adds a header."""
        self._wire.headers.append((name, value))
        return self

    def bearer(self, token: str) -> Self:
        """Adds the header `authorization: Bearer ...`, usually with a placeholder."""
        return self.header("authorization", f"Bearer {token}")

    def basic(self, credentials: str) -> Self:
        """Adds the header `authorization: Basic ...` with the result of `vault.basic`."""
        return self.header("authorization", f"Basic {credentials}")

    def body(self, body: bytes) -> Self:
        """Sets the body."""
        self._wire.body = body
        return self

    def json(self, value: Any) -> Self:
        """Sets a JSON body and its content type."""
        return self.header("content-type", "application/json").body(json.dumps(value).encode())

    def form(self, fields: dict[str, str]) -> Self:
        """Sets the body of an HTML form and its content type.

        Do not put a secret's placeholder in it: the secret's value would not be percent-encoded.
        """
        body = urlencode(fields, quote_via=quote, safe="")
        return self.header("content-type", "application/x-www-form-urlencoded").body(body.encode())

    def timeout_ms(self, timeout_ms: int) -> Self:
        """Sets the timeout. The host caps it at the remaining time of the call."""
        self._wire.timeout_ms = timeout_ms
        return self

    def send(self) -> "Response":
        """Sends the request and returns the response, whatever its status.

        Raises a fault: `unavailable` with the code `timeout`, `connect` or `cut`, or
        `misconfigured` if the request is not permitted.
        """
        response = wire.send(self._wire)
        return Response(response.status, response.headers, response.body)


class Response:
    """An HTTP response."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def header(self, name: str) -> str | None:
        """Returns the first header of this name, ignoring case."""
        return header(self.headers, name)

    def text(self) -> str:
        """Returns the body as text, with invalid UTF-8 replaced by U+FFFD."""
        return self.body.decode(errors="replace")

    def json(self, shape: dict[str, type] | None = None) -> dict[str, Any]:
        """Returns the body as a JSON object.

        `shape` lists required fields and their types. Any other body is a fault of the upstream:
        see `unexpected`.
        """
        try:
            value = json.loads(self.body)
        except ValueError:
            raise self.unexpected() from None
        if type(value) is not dict:
            raise self.unexpected()
        for name, kind in (shape or {}).items():
            if type(value.get(name)) is not kind:
                raise self.unexpected(name)
        return value

    def unexpected(self, field: str | None = None) -> Err[Fault]:
        """Returns the fault for an unexpected body.

        It never quotes the body, which may contain personal data.
        """
        where = f" (field {field})" if field else ""
        return faults.unavailable(f"HTTP {self.status} with an unexpected body{where}", "unexpected-answer")


def header(headers: list[tuple[str, str]], name: str) -> str | None:
    """Returns the first header of this name, ignoring case."""
    return next((value for other, value in headers if other.lower() == name.lower()), None)


def join(base: str, path: str) -> str:
    """Joins `base` and `path` with exactly one slash."""
    return f"{base.rstrip('/')}/{path.lstrip('/')}"


def encode(text: str) -> str:
    """Percent-encodes a text as one path segment or query value.

    Encodes all bytes except ASCII letters, digits and `-._~`.
    """
    return quote(text, safe="")
