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
        answer = send(http.get(url).bearer(token()))
        if answer.status == 404:
            raise faults.not_found("no such citizen")
        if answer.status == 422:
            raise faults.invalid("number", "the register rejected the number")
        if answer.status == 451:
            raise faults.refused("sealed", "the entry is sealed")
        citizen = read(answer, {"name": str, "born": str})
        year, month, day = citizen["born"].split("-")
        details = {"name": citizen["name"], "date_of_birth": f"{day}/{month}/{year}"}
        return Entry(json.dumps(details), citizen.get("email"), citizen.get("phone"))


def token() -> str:
    """Returns the access token, which the host caches for its lifetime."""
    kept = cache.get("token")
    if kept is not None:
        return kept
    url = settings.url("base_url", "/tokens")
    answer = send(http.post(url).basic(vault.basic("client", "key")).json({"scope": "citizens"}))
    told = read(answer, {"token": str, "expires_in": int})
    cache.put("token", told["token"], told["expires_in"])
    return told["token"]


def send(request: http.Request) -> http.Response:
    """Sends a request with a header that differs in each call, and is the same in each run of a
    call.
    """
    return request.header("x-mark", f"{time.time()} {random.SystemRandom().random()}").send()


def read(answer: http.Response, shape: dict[str, type]) -> dict:
    if answer.status == 200:
        return answer.json(shape)
    if answer.status == 401:
        raise faults.misconfigured("the register does not accept the key")
    if answer.status == 402:
        log.error("the account at the register has no credit")
    raise faults.unavailable(f"the register returned {answer.status}")
