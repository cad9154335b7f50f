"""A register of citizens."""

import json
import re

from componentize_py_types import Err
from tollhouse_plugin import faults, http, log, settings, vault
from wit_world import exports
from wit_world.imports.identity import Entry, Question
from wit_world.imports.types import Fault


class IdentityLookup(exports.IdentityLookup):
    def lookup(self, question: Question) -> Entry:
        url = settings.url("base_url", f"/citizens/{http.encode(question.identifier)}")
        response = http.get(url).bearer(vault.secret("api_key")).send()
        citizen = read(response).json({"first_name": str, "last_name": str, "born": str})
        details = {
            "first_name": citizen["first_name"],
            "last_name": citizen["last_name"],
            "date_of_birth": day_first(citizen["born"]),
            "phone_number": citizen.get("phone"),
        }
        return Entry(json.dumps(details), None, citizen.get("phone"))


def read(response: http.Response) -> http.Response:
    """Maps a status other than 200 to a fault.

    Only the register itself can refuse: an error page from an intermediary counts as an outage.
    """
    if response.status == 200:
        return response
    if response.status in (401, 403):
        raise faults.misconfigured("the register does not accept the key")
    if response.status in (400, 402, 404, 422):
        raise refusal(response.json({"code": str})["code"])
    raise faults.unavailable(f"the register returned {response.status}")


def refusal(code: str) -> Err[Fault]:
    match code:
        case "no_such_citizen":
            return faults.not_found("no such citizen")
        case "bad_number":
            return faults.invalid("number", "the register rejected the number")
        case "sealed":
            return faults.refused("sealed", "the entry is sealed")
        case "no_credit":
            log.error("the account at the register has no credit")
            return faults.unavailable("no credit", "no-credit")
        case _:
            return faults.other("the register refused the lookup", code)


def day_first(date: str) -> str | None:
    """Converts 1990-12-10 to 10/12/1990, and anything else to None."""
    parts = re.fullmatch(r"(\d{4})-(\d{2})-(\d{2})", date)
    return parts and f"{parts[3]}/{parts[2]}/{parts[1]}"
