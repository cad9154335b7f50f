import base64
import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from wit_world.imports.identity import Entry, Question
from wit_world.imports.types import FaultCategory

from plugin import IdentityLookup
from tollhouse_plugin.testing import FakeHost

MANIFEST = json.loads(Path(__file__).with_name("manifest.json").read_text())
CITIZEN = "/citizens/204060"


def lookup() -> Entry:
    return IdentityLookup().lookup(Question("citizen", "204060", None))


def refusing(status: int) -> FakeHost:
    """A host whose register returns this status for a lookup."""
    token, _ = MANIFEST["examples"]["answers"]
    host = FakeHost().examples({**MANIFEST, "examples": {"answers": [token]}})
    return host.answer("GET", CITIZEN, status)


class TheRegister(unittest.TestCase):
    def test_an_entry_is_normalized_and_the_token_is_cached(self) -> None:
        host = FakeHost().examples(MANIFEST).install()
        for _ in range(2):
            entry = lookup()
            self.assertEqual(json.loads(entry.details), {"name": "Critias", "date_of_birth": "10/12/1990"})
            self.assertEqual((entry.email, entry.phone), (None, "+306900000000"))
        self.assertEqual([request.method for request in host.requests], ["POST", "GET", "GET"])
        basic = base64.b64encode(b"tollhouse:example-secret").decode()
        self.assertEqual(host.requests[0].header("authorization"), f"Basic {basic}")
        self.assertEqual(host.requests[2].header("authorization"), "Bearer example-token")

    def test_each_status_has_its_category(self) -> None:
        for status, category in {
            404: FaultCategory.NOT_FOUND,
            422: FaultCategory.INVALID,
            451: FaultCategory.REFUSED,
            401: FaultCategory.MISCONFIGURED,
            402: FaultCategory.UNAVAILABLE,
            500: FaultCategory.UNAVAILABLE,
        }.items():
            refusing(status).install()
            with self.subTest(status), self.assertRaises(Err) as raised:
                lookup()
            self.assertEqual(raised.exception.value.category, category)

    def test_failures_of_the_register_are_unavailable(self) -> None:
        account = {**MANIFEST, "examples": {}}
        for status, body in [(200, "<html>"), (200, {"token": 7}), (503, "")]:
            FakeHost().examples(account).answer("POST", "/tokens", status, body).install()
            with self.subTest(body), self.assertRaises(Err) as raised:
                lookup()
            self.assertEqual(raised.exception.value.category, FaultCategory.UNAVAILABLE)
