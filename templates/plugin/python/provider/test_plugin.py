import json
import unittest
from pathlib import Path

from componentize_py_types import Err
from tollhouse_plugin.testing import FakeHost, example_notification
from wit_world.exports.checkout import CheckoutOrder, CheckoutSession
from wit_world.exports.notifications import Refusal_Unauthentic
from wit_world.imports.payments import Payment, PaymentStatus
from wit_world.imports.types import Fault, FaultCategory, Money

from plugin import Checkout, Notifications, Verification

MANIFEST = json.loads(Path(__file__).with_name("manifest.json").read_text())
PAYMENT = ("GET", "/payments/example-1")


def account() -> FakeHost:
    """A host with an account at the provider, without responses."""
    return FakeHost().examples({**MANIFEST, "examples": {}})


def start() -> CheckoutSession:
    order = CheckoutOrder(
        service_ref="example-1",
        amount=Money(500_000, "NGN"),
        email="ada@example.com",
        customer_name=None,
        narration="",
        channels=[],
        success_url="https://shop.example/done",
        cancel_url=None,
        metadata='{"order":"1"}',
        save_instrument=False,
    )
    return Checkout().start(order)


def verify() -> Payment:
    return Verification().verify("example-1")


class TheProvider(unittest.TestCase):
    def fault(self, call) -> Fault:
        with self.assertRaises(Err) as raised:
            call()
        return raised.exception.value

    def test_the_examples_succeed(self) -> None:
        FakeHost().examples(MANIFEST).install()
        self.assertEqual(start().url, "https://pay.upstream.example/1001")
        payment = verify()
        self.assertEqual((payment.status, payment.amount.minor), (PaymentStatus.SUCCESS, 500_000))
        self.assertEqual(json.loads(payment.metadata or ""), {"order": "1"})
        [notification] = Notifications().parse(*example_notification(MANIFEST))
        self.assertEqual(notification.service_ref, "example-1")

    def test_the_request_has_the_key_and_the_order(self) -> None:
        host = account().answer("POST", "/payments", 201, {"url": "https://p"}).install()
        start()
        [sent] = host.requests
        self.assertEqual(sent.url, "https://api.upstream.example/payments")
        self.assertEqual(sent.header("authorization"), "Bearer example-secret")
        asked = json.loads(sent.body)
        self.assertEqual((asked["amount"], asked["currency"]), (500_000, "NGN"))
        self.assertEqual((asked["reference"], asked["metadata"]), ("example-1", {"order": "1"}))

    def test_each_status_of_a_payment_is_mapped(self) -> None:
        for text, status in {
            "paid": PaymentStatus.SUCCESS,
            "declined": PaymentStatus.FAILED,
            "refunded": PaymentStatus.REVERSED,
            "open": PaymentStatus.PENDING,
            "a new word": PaymentStatus.PENDING,
        }.items():
            body = {"id": "1", "status": text, "amount": 1, "currency": "NGN"}
            account().answer(*PAYMENT, 200, body).install()
            self.assertEqual(verify().status, status, text)

    def test_each_refusal_has_its_category(self) -> None:
        for status, code, category, expected in [
            (401, "", FaultCategory.MISCONFIGURED, ""),
            (404, "no_such_payment", FaultCategory.NOT_FOUND, ""),
            (409, "reference_taken", FaultCategory.REFUSED, "duplicate-reference"),
            (422, "too_much", FaultCategory.REFUSED, "too_much"),
        ]:
            account().answer("POST", "/payments", status, {"code": code, "message": "no"}).install()
            fault = self.fault(start)
            self.assertEqual((fault.category, fault.code), (category, expected), status)

    def test_failures_of_the_provider_are_unavailable(self) -> None:
        for host in [
            account().timeout(*PAYMENT),
            account().no_connection(*PAYMENT),
            account().cut(*PAYMENT),
            account().answer(*PAYMENT, 200, "<html>"),
            account().answer(*PAYMENT, 404, "<html>"),
            account().answer(*PAYMENT, 429),
            account().answer(*PAYMENT, 500),
        ]:
            host.install()
            self.assertEqual(self.fault(verify).category, FaultCategory.UNAVAILABLE)

    def test_a_webhook_without_a_valid_signature_is_unauthentic(self) -> None:
        FakeHost().examples(MANIFEST).install()
        headers, body = example_notification(MANIFEST)
        for given in [([], body), (headers, body + b" ")]:
            refusal = self.fault(lambda: Notifications().parse(*given))
            self.assertEqual(refusal, Refusal_Unauthentic())
