import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from tollhouse_plugin.testing import FakeHost
from wit_world.exports.sms import TextMessage
from wit_world.imports.types import Fault, FaultCategory

from plugin import Sms

MANIFEST = json.loads(Path(__file__).with_name("manifest.json").read_text())
MESSAGES = ("POST", "/messages")


def account() -> FakeHost:
    """A host with an account at the gateway, without responses."""
    return FakeHost().examples({**MANIFEST, "examples": {}})


def send(sender: str = "") -> str:
    return Sms().send(TextMessage("+2348012345678", sender, "Your code is 4071", "r-1"))


class TheGateway(unittest.TestCase):
    def fault(self) -> Fault:
        with self.assertRaises(Err) as raised:
            send()
        return raised.exception.value

    def test_the_examples_succeed(self) -> None:
        FakeHost().examples(MANIFEST).install()
        self.assertEqual(send(), "m-1")

    def test_the_request_has_the_key_and_the_message(self) -> None:
        for sender, expected in [("", "Shop"), ("Bank", "Bank")]:
            taken = {"id": "m-2", "state": "accepted"}
            host = account().setting("sender", "Shop").answer(*MESSAGES, 202, taken).install()
            send(sender)
            [sent] = host.requests
            self.assertEqual(sent.header("authorization"), "Bearer example-secret")
            self.assertEqual(sent.timeout_ms, 10_000)
            asked = {"to": "+2348012345678", "from": expected, "text": "Your code is 4071", "reference": "r-1"}
            self.assertEqual(json.loads(sent.body), asked)

    def test_each_refusal_has_its_category_and_no_personal_data(self) -> None:
        for status, body, category in [
            (401, {}, FaultCategory.MISCONFIGURED),
            (422, {"code": "bad_number"}, FaultCategory.INVALID),
            (400, {"code": "opted_out"}, FaultCategory.REFUSED),
            (400, {"code": "bad_sender"}, FaultCategory.MISCONFIGURED),
            (402, {"code": "no_credit"}, FaultCategory.UNAVAILABLE),
            (400, {"code": "unknown to +2348012345678"}, FaultCategory.OTHER),
            (200, {"id": "m-3", "state": "failed for +2348012345678"}, FaultCategory.OTHER),
        ]:
            account().answer(*MESSAGES, status, body).install()
            fault = self.fault()
            self.assertEqual(fault.category, category, body)
            self.assertNotIn("2348012345678", repr(fault))

    def test_failures_of_the_gateway_are_unavailable(self) -> None:
        for host in [
            account().timeout(*MESSAGES),
            account().no_connection(*MESSAGES),
            account().cut(*MESSAGES),
            account().answer(*MESSAGES, 200, "<html>"),
            account().answer(*MESSAGES, 400, "<html>"),
            account().answer(*MESSAGES, 503),
        ]:
            host.install()
            self.assertEqual(self.fault().category, FaultCategory.UNAVAILABLE)
