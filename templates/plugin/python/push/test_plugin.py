import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from tollhouse_plugin import state
from tollhouse_plugin.testing import FakeHost, example_notification
from wit_world.exports.sessions import NextStep_Prompt, Session, SessionOrder
from wit_world.imports.payments import KnownSession, Payment, PaymentStatus
from wit_world.imports.types import Fault, FaultCategory, Money

from plugin import Sessions

MANIFEST = json.loads(Path(__file__).with_name("manifest.json").read_text())
PUSH = ("GET", "/pushes/1001")
CALLBACK_URL = "https://lender.example/notifications/1"


def account() -> FakeHost:
    """A host with an account at the provider, without responses."""
    return FakeHost().examples({**MANIFEST, "examples": {}})


def start() -> Session:
    order = SessionOrder(
        service_ref="example-1",
        amount=Money(500_000, "KES"),
        email="ada@example.com",
        phone="+254712345678",
        customer_name=None,
        narration="Loan 7",
        channels=[],
        success_url="https://shop.example/done",
        cancel_url=None,
        notification_url=CALLBACK_URL,
        metadata="{}",
        save_instrument=False,
    )
    return Sessions().start(order)


def session(started: bytes | None, notified: bytes | None) -> KnownSession:
    """A payment with this state and notification data."""
    return KnownSession(
        service_ref="example-1",
        transaction_id="",
        amount=Money(500_000, "KES"),
        started_at="2026-01-01T09:00:00.000Z",
        state=started,
        notified=notified,
    )


def push(reference: str, status: str) -> dict[str, object]:
    """A push as the provider reports it."""
    return {"reference": reference, "status": status, "amount": 1, "currency": "KES"}


def verify() -> Payment:
    return Sessions().verify(session(state.encode({"id": "1001"}), None))


def receive(body: bytes) -> bytes:
    return Sessions().receive(session(None, None), [], body)


class ThePush(unittest.TestCase):
    def fault(self, call) -> Fault:
        with self.assertRaises(Err) as raised:
            call()
        return raised.exception.value

    def test_the_examples_succeed(self) -> None:
        FakeHost().examples(MANIFEST).install()
        begun = start()
        self.assertIsInstance(begun.next, NextStep_Prompt)
        _, body = example_notification(MANIFEST)
        payment = Sessions().verify(session(begun.state, receive(body)))
        self.assertEqual((payment.status, payment.amount.minor), (PaymentStatus.SUCCESS, 500_000))

    def test_the_request_has_the_key_and_the_order(self) -> None:
        host = account().answer("POST", "/pushes", 201, {"id": "1001"}).install()
        start()
        [sent] = host.requests
        self.assertEqual(sent.url, "https://api.upstream.example/pushes")
        self.assertEqual(sent.header("authorization"), "Bearer example-secret")
        expected = {
            "reference": "example-1",
            "amount": 500_000,
            "currency": "KES",
            "phone": "+254712345678",
            "description": "Loan 7",
            "callback_url": CALLBACK_URL,
        }
        self.assertEqual(json.loads(sent.body), expected)

    def test_each_status_of_a_push_is_mapped(self) -> None:
        for text, status in {
            "paid": PaymentStatus.SUCCESS,
            "declined": PaymentStatus.FAILED,
            "expired": PaymentStatus.FAILED,
            "refunded": PaymentStatus.REVERSED,
            "sent": PaymentStatus.PENDING,
            "a new word": PaymentStatus.PENDING,
        }.items():
            account().answer(*PUSH, 200, push("example-1", text)).install()
            self.assertEqual(verify().status, status, text)

    def test_a_callback_identifies_a_push_whose_response_was_lost(self) -> None:
        account().answer(*PUSH, 200, push("example-1", "paid")).install()
        fault = self.fault(lambda: Sessions().verify(session(None, None)))
        self.assertEqual(fault.category, FaultCategory.NOT_FOUND)
        notified = receive(b'{"id": "1001", "reference": "example-1"}')
        payment = Sessions().verify(session(None, notified))
        self.assertEqual(payment.status, PaymentStatus.SUCCESS)

    def test_a_push_of_another_payment_is_not_accepted(self) -> None:
        account().answer(*PUSH, 200, push("example-2", "paid")).install()
        self.assertEqual(self.fault(verify).category, FaultCategory.UNAVAILABLE)

    def test_a_callback_of_another_push_is_invalid(self) -> None:
        for body in (b"{}", b"not JSON", b'{"id": "1001", "reference": "example-2"}'):
            fault = self.fault(lambda: receive(body))
            self.assertEqual(fault.category, FaultCategory.INVALID, body)

    def test_each_refusal_has_its_category(self) -> None:
        for status, code, category, expected in [
            (401, "", FaultCategory.MISCONFIGURED, ""),
            (404, "no_such_push", FaultCategory.NOT_FOUND, ""),
            (409, "reference_taken", FaultCategory.REFUSED, "duplicate-reference"),
            (422, "unsupported_phone", FaultCategory.INVALID, ""),
            (422, "too_much", FaultCategory.REFUSED, "too_much"),
        ]:
            account().answer("POST", "/pushes", status, {"code": code, "message": "no"}).install()
            fault = self.fault(start)
            self.assertEqual((fault.category, fault.code), (category, expected), code)

    def test_failures_of_the_provider_are_unavailable(self) -> None:
        for host in [
            account().timeout(*PUSH),
            account().no_connection(*PUSH),
            account().cut(*PUSH),
            account().answer(*PUSH, 200, "<html>"),
            account().answer(*PUSH, 404, "<html>"),
            account().answer(*PUSH, 429),
            account().answer(*PUSH, 500),
        ]:
            host.install()
            self.assertEqual(self.fault(verify).category, FaultCategory.UNAVAILABLE)
