"""A fake host for native tests.

It returns scripted responses, handles secrets as the real host does, and records requests.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any, Callable, Self
from urllib.parse import urlsplit

from componentize_py_types import Err
from wit_world.imports import cache, http, log, settings, vault, vault_transform
from wit_world.imports.types import Fault

from . import faults
from .http import encode, header

SECRET = "example-secret"
SETTING = {"text": "example", "url": "https://provider.example"}


@dataclass
class Sent:
    """A request as egress would send it: placeholders are replaced."""

    method: str
    url: str
    headers: list[tuple[str, str]]
    body: str
    """Empty if there is none."""
    timeout_ms: int | None

    def header(self, name: str) -> str | None:
        """Returns the first header of this name, ignoring case."""
        return header(self.headers, name)


class FakeHost:
    """The fake host of a plugin under test. Configure it, then install it.

    RSA is not computed: a signature is the text `rsa-sha256(KEY, DIGEST)`, with the name of the
    secret and the SHA-256 of the data in hexadecimal; a ciphertext is `rsa-encrypt(KEY, DATA)`.
    """

    def __init__(self) -> None:
        self.requests: list[Sent] = []
        """All requests so far, in order, with placeholders replaced."""
        self.logs: list[tuple[log.Level, str]] = []
        """Level and message."""
        self.cache: dict[str, tuple[str, int]] = {}
        """Value and TTL in seconds, by key."""
        self._secrets: dict[str, str] = {}
        self._settings: dict[str, str] = {}
        self._placeholders: dict[str, tuple[tuple[str, ...], str]] = {}
        """Names of the secrets, and the value, by placeholder."""
        self._bindings: dict[str, dict[str, list[str]]] = {}
        self._routes: dict[tuple[str, str], list[Callable[[], http.Response]]] = {}

    def secret(self, name: str, value: str) -> Self:
        """Sets a secret. Reading a secret that is not set is `misconfigured`."""
        self._secrets[name] = value
        return self

    def setting(self, name: str, value: str) -> Self:
        """Sets a setting."""
        self._settings[name] = value
        return self

    def examples(self, manifest: dict[str, Any]) -> Self:
        """Loads a complete manifest, with the account that `tollhouse plugin bench` uses.

        Sets the defaults of its settings, the bindings of its secrets, example values for the
        account, and the responses in its examples.
        """
        secrets = manifest.get("secrets", [])
        if isinstance(secrets, dict):
            self._bindings = secrets
        for name in secrets:
            self.secret(name, SECRET)
        for name, setting in manifest.get("settings", {}).items():
            self.setting(name, setting.get("default", SETTING[setting["kind"]]))
        for name, value in manifest.get("examples", {}).get("credentials", {}).items():
            (self.setting if name in manifest.get("settings", {}) else self.secret)(name, value)
        for example in manifest.get("examples", {}).get("answers", []):
            method, url = example["to"].split(" ", 1)
            self.answer(method, url, example.get("status", 200), example["body"])
        return self

    def answer(self, method: str, url: str, status: int, body: Any = "") -> Self:
        """Adds a response to a request.

        `url` is the complete URL or its end, with or without the query. A string is sent as is,
        any other body as JSON. Several responses to the same request are returned in order; the
        last one repeats.
        """
        text = body if isinstance(body, str) else json.dumps(body)
        return self._route(method, url, lambda: http.Response(status, [], text.encode()))

    def fault(self, method: str, url: str, fault: Err[Fault]) -> Self:
        """Fails a request with a fault of the host."""

        def refuse() -> http.Response:
            raise fault

        return self._route(method, url, refuse)

    def timeout(self, method: str, url: str) -> Self:
        """Simulates a timeout: the request is sent, and no response arrives in time."""
        return self.fault(method, url, faults.unavailable("no response in time", "timeout"))

    def no_connection(self, method: str, url: str) -> Self:
        """Simulates a connection failure."""
        return self.fault(method, url, faults.unavailable("no connection", "connect"))

    def cut(self, method: str, url: str) -> Self:
        """Simulates a connection that ends during the response."""
        return self.fault(method, url, faults.unavailable("the response was cut off", "cut"))

    def _route(self, method: str, url: str, response: Callable[[], http.Response]) -> Self:
        self._routes.setdefault((method, url), []).append(response)
        return self

    def install(self) -> Self:
        """Makes this the current host, until another one is installed."""
        http.send = self._send
        vault.secret = lambda name: self._placeholder((name,), self._value(name))
        vault.basic = self._basic
        vault.hmac = self._hmac
        vault_transform.transform = self._transform
        vault.matches = lambda secret, candidate: self._value(secret).encode() == candidate
        settings.get = lambda name: self._settings.get(name)
        cache.get = lambda key: self.cache.get(key, (None,))[0]
        cache.put = lambda key, value, ttl_seconds: self.cache.update({key: (value, ttl_seconds)})
        log.write = lambda level, message: self.logs.append((level, message))
        return self

    def _send(self, request: http.Request) -> http.Response:
        self._check_bindings(request)
        headers = [(name, self._fill(value)) for name, value in request.headers]
        body = self._fill((request.body or b"").decode(errors="replace"))
        self.requests.append(Sent(request.method, request.url, headers, body, request.timeout_ms))
        path = request.url.split("?")[0]
        for (method, end), responses in self._routes.items():
            if method == request.method and (request.url.endswith(end) or path.endswith(end)):
                return (responses.pop(0) if len(responses) > 1 else responses[0])()
        raise AssertionError(f"FakeHost has no response for {request.method} {request.url}")

    def _basic(self, user: str, password: str) -> str:
        name = self._settings[user] if user in self._settings else self._value(user)
        pair = f"{name}:{self._value(password)}"
        return self._placeholder((user, password), base64.b64encode(pair.encode()).decode())

    def _hmac(self, algorithm: str, secret: str, data: bytes) -> bytes:
        if algorithm not in ("sha256", "sha512"):
            raise faults.invalid("algorithm", "no such algorithm")
        return hmac.digest(self._value(secret).encode(), data, algorithm)

    def _transform(self, template: bytes, steps: list[vault_transform.Step]) -> str:
        text = template.decode(errors="replace")
        parts = [names for placeholder, (names, _) in self._placeholders.items() if placeholder in text]
        value = self._fill(text).encode()
        for step in steps:
            value = self._apply(value, step)
        try:
            return self._placeholder(tuple(name for names in parts for name in names), value.decode())
        except UnicodeDecodeError:
            raise faults.misconfigured("the result of a transformation is not text")

    def _apply(self, data: bytes, step: vault_transform.Step) -> bytes:
        """Applies a step of a transformation. RSA is not computed: the result names key and data."""
        key = step.key or ""
        match step.name:
            case "base64":
                return base64.b64encode(data)
            case "base64url":
                return base64.urlsafe_b64encode(data).rstrip(b"=")
            case "hex":
                return data.hex().encode()
            case "sha256" | "sha512":
                return hashlib.new(step.name, data).digest()
            case "hmac-sha256" | "hmac-sha512":
                return self._hmac(step.name.removeprefix("hmac-"), key, data)
            case "rsa-sha256":
                self._value(key)
                return f"rsa-sha256({key}, {hashlib.sha256(data).hexdigest()})".encode()
            case "rsa-encrypt":
                if key not in self._settings:
                    self._value(key)
                return f"rsa-encrypt({key}, ".encode() + data + b")"
        raise faults.invalid("algorithm", "no such algorithm")

    def _placeholder(self, names: tuple[str, ...], value: str) -> str:
        placeholder = f"vault-{len(self._placeholders):032x}"
        self._placeholders[placeholder] = (names, value)
        return placeholder

    def _check_bindings(self, request: http.Request) -> None:
        """Fails the test if a placeholder is in a place where its secret must not be sent."""
        parts = [("the method or the URL", request.method), ("the method or the URL", request.url)]
        parts += [("the name of a header", name) for name, _ in request.headers]
        parts += [(f"header:{name.lower()}", value) for name, value in request.headers]
        parts.append(("body", (request.body or b"").decode(errors="replace")))
        for placeholder, (names, _) in self._placeholders.items():
            for place, text in parts:
                if placeholder not in text and encode(placeholder) not in text:
                    continue
                for name in names:
                    if not self._permits(name, place, request.url):
                        raise AssertionError(
                            f"the host rejects a request: the secret {name} is in {place}, where the manifest does not bind it"
                        )

    def _permits(self, name: str, place: str, url: str) -> bool:
        if name not in self._bindings:
            return place == "body" or place.startswith("header:")
        binding = self._bindings[name]
        origins = (urlsplit(self._settings.get(to, f"https://{to}"))[:2] for to in binding.get("to", []))
        return place in binding.get("in", []) and urlsplit(url)[:2] in origins

    def _fill(self, text: str) -> str:
        for placeholder, (_, value) in self._placeholders.items():
            text = text.replace(placeholder, value)
        return text

    def _value(self, name: str) -> str:
        if name not in self._secrets:
            raise faults.misconfigured(f"the secret {name} is missing")
        return self._secrets[name]


def example_notification(manifest: dict[str, Any]) -> tuple[list[tuple[str, str]], bytes]:
    """Returns headers and body of the manifest's example webhook."""
    notification = manifest["examples"]["notification"]
    body = notification["body"]
    text = body if isinstance(body, str) else json.dumps(body)
    return list(notification.get("headers", {}).items()), text.encode()
