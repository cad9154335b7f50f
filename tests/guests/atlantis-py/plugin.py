"""An example of a plugin in Python: a country whose register requires an access token."""

import json
import random
import time

from tollhouse_plugin import cache, faults, http, log, settings, vault
from wit_world import exports
from wit_world.imports.identity import Entry, Question


class IdentityLookup(exports.IdentityLookup):
    def lookup(self, question: Question) -> Entry:
        url = settings.url("base_url", f"/citizens/{http.encode(question.identifier)}")
        response = send(http.get(url).bearer(token()))
        if response.status == 404:
            raise faults.not_found("no such citizen")
        if response.status == 422:
            raise faults.invalid("number", "the register rejected the number")
        if response.status == 451:
            raise faults.refused("sealed", "the entry is sealed")
        citizen = read(response, {"name": str, "born": str})
        year, month, day = citizen["born"].split("-")
        details = {"name": citizen["name"], "date_of_birth": f"{day}/{month}/{year}"}
        return Entry(json.dumps(details), citizen.get("email"), citizen.get("phone"))


def token() -> str:
    """Returns the access token, which the host caches for its lifetime."""
    kept = cache.get("token")
    if kept is not None:
        return kept
    url = settings.url("base_url", "/tokens")
    response = send(http.post(url).basic(vault.basic("client", "key")).json({"scope": "citizens"}))
    body = read(response, {"token": str, "expires_in": int})
    cache.put("token", body["token"], body["expires_in"])
    return body["token"]


def send(request: http.Request) -> http.Response:
    """Sends a request with a header that differs in each call, and is the same in each run of a
    call.
    """
    return request.header("x-mark", f"{time.time()} {random.SystemRandom().random()}").send()


def read(response: http.Response, shape: dict[str, type]) -> dict:
    if response.status == 200:
        return response.json(shape)
    if response.status == 401:
        raise faults.misconfigured("the register does not accept the key")
    if response.status == 402:
        log.error("the account at the register has no credit")
    raise faults.unavailable(f"the register returned {response.status}")
