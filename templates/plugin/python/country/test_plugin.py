import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from tollhouse_plugin.testing import FakeHost
from wit_world.imports.identity import Entry, Question
from wit_world.imports.types import FaultCategory

from plugin import IdentityLookup

MANIFEST = json.loads(Path(__file__).with_name("manifest.json").read_text())
CITIZEN = ("GET", "/citizens/AB123456")


def account() -> FakeHost:
    """A host with an account at the register, without responses."""
    return FakeHost().examples({**MANIFEST, "examples": {}})


def lookup() -> Entry:
    return IdentityLookup().lookup(Question("citizen_card", "AB123456", None))


class TheRegister(unittest.TestCase):
    def category(self) -> FaultCategory:
        with self.assertRaises(Err) as raised:
            lookup()
        return raised.exception.value.category

    def test_the_examples_succeed(self) -> None:
        host = FakeHost().examples(MANIFEST).install()
        entry = lookup()
        self.assertEqual(json.loads(entry.details)["date_of_birth"], "10/12/1990")
        self.assertEqual(entry.phone, "+2348012345678")
        self.assertEqual(host.requests[0].header("authorization"), "Bearer example-secret")

    def test_absent_and_invalid_fields_are_null(self) -> None:
        citizen = {"first_name": "Ada", "last_name": "Obi", "born": "unknown"}
        account().answer(*CITIZEN, 200, citizen).install()
        details = json.loads(lookup().details)
        self.assertEqual((details["date_of_birth"], details["phone_number"]), (None, None))

    def test_each_refusal_has_its_category(self) -> None:
        for status, code, category in [
            (401, "", FaultCategory.MISCONFIGURED),
            (404, "no_such_citizen", FaultCategory.NOT_FOUND),
            (422, "bad_number", FaultCategory.INVALID),
            (400, "sealed", FaultCategory.REFUSED),
            (402, "no_credit", FaultCategory.UNAVAILABLE),
            (400, "a new word", FaultCategory.OTHER),
        ]:
            account().answer(*CITIZEN, status, {"code": code}).install()
            self.assertEqual(self.category(), category, (status, code))

    def test_failures_of_the_register_are_unavailable(self) -> None:
        for host in [
            account().timeout(*CITIZEN),
            account().no_connection(*CITIZEN),
            account().cut(*CITIZEN),
            account().answer(*CITIZEN, 200, "<html>"),
            account().answer(*CITIZEN, 404, "<html>"),
            account().answer(*CITIZEN, 500),
        ]:
            host.install()
            self.assertEqual(self.category(), FaultCategory.UNAVAILABLE)
