"""The only way out of the sandbox: https, towards the hosts that the operator granted, without redirects."""

import json
from typing import Any, Self
from urllib.parse import quote, urlencode

from componentize_py_types import Err
from wit_world.imports import http as wire
from wit_world.imports.types import Fault

from . import faults


def get(url: str) -> "Request":
    return Request("GET", url)


def post(url: str) -> "Request":
    return Request("POST", url)


def put(url: str) -> "Request":
    return Request("PUT", url)


def delete(url: str) -> "Request":
    return Request("DELETE", url)


class Request:
    """A request on its way to be sent. Header values and the body may hold placeholders from `vault`; the URL may not."""

    def __init__(self, method: str, url: str) -> None:
        self._wire = wire.Request(method, url, [], None, None)

    def header(self, name: str, value: str) -> Self:
        """One more header."""
        self._wire.headers.append((name, value))
        return self

    def bearer(self, token: str) -> Self:
        """The header `authorization: Bearer ...`, usually with a placeholder."""
        return self.header("authorization", f"Bearer {token}")

    def basic(self, credentials: str) -> Self:
        """The header `authorization: Basic ...`, with what `vault.basic` gave."""
        return self.header("authorization", f"Basic {credentials}")

    def body(self, body: bytes) -> Self:
        """A body as it is."""
        self._wire.body = body
        return self

    def json(self, value: Any) -> Self:
        """A JSON body and its content type."""
        return self.header("content-type", "application/json").body(json.dumps(value).encode())

    def form(self, fields: dict[str, str]) -> Self:
        """The body of an HTML form and its content type. A secret's placeholder does not belong here: its value would not be
        encoded."""
        body = urlencode(fields, quote_via=quote, safe="")
        return self.header("content-type", "application/x-www-form-urlencoded").body(body.encode())

    def timeout_ms(self, timeout_ms: int) -> Self:
        """How long to wait; at most what remains of the call's own time."""
        self._wire.timeout_ms = timeout_ms
        return self

    def send(self) -> "Response":
        """Sends it. Every HTTP answer is a response, whatever its status; what is raised is `unavailable` with the code `timeout`,
        `connect` or `cut`, or `misconfigured` when the request may not leave."""
        answer = wire.send(self._wire)
        return Response(answer.status, answer.headers, answer.body)


class Response:
    """What came back."""

    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def header(self, name: str) -> str | None:
        """The first header of that name, in whatever case."""
        return header(self.headers, name)

    def text(self) -> str:
        """The body as text; what is no UTF-8 is replaced."""
        return self.body.decode(errors="replace")

    def json(self, shape: dict[str, type] | None = None) -> dict[str, Any]:
        """The body read as a JSON object. `shape` names fields that must be there, each with its type. When it is something else the
        upstream is out of order: see `unexpected`."""
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
        """The fault for a body that is not as expected. Nothing of the body is quoted, since it may name people."""
        where = f" (field {field})" if field else ""
        return faults.unavailable(f"HTTP {self.status} with an unexpected body{where}", "unexpected-answer")


def header(headers: list[tuple[str, str]], name: str) -> str | None:
    """The first header of that name, in whatever case."""
    return next((value for other, value in headers if other.lower() == name.lower()), None)


def join(base: str, path: str) -> str:
    """`base` with `path` behind it and exactly one slash between the two."""
    return f"{base.rstrip('/')}/{path.lstrip('/')}"


def encode(text: str) -> str:
    """A text as one segment of a path or one value of a query: all but letters, digits and `-._~` as `%XX`."""
    return quote(text, safe="")
