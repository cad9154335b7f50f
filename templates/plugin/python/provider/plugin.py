"""A payment provider: hosted checkout, verification and signed webhooks."""

import json

from componentize_py_types import Err
from tollhouse_plugin import faults, http, settings, vault
from wit_world import exports
from wit_world.exports.checkout import CheckoutOrder, CheckoutSession
from wit_world.exports.notifications import Notification, Refusal_Malformed, Refusal_Unauthentic, Subject
from wit_world.imports.payments import Payment, PaymentStatus
from wit_world.imports.types import Fault, Money

STATUS = {
    "paid": PaymentStatus.SUCCESS,
    "declined": PaymentStatus.FAILED,
    "refunded": PaymentStatus.REVERSED,
}


class Checkout(exports.Checkout):
    def start(self, order: CheckoutOrder) -> CheckoutSession:
        body = {
            "reference": order.service_ref,
            "amount": order.amount.minor,
            "currency": order.amount.currency,
            "email": order.email,
            "return_url": order.success_url,
            "metadata": json.loads(order.metadata),
        }
        answer = send(http.post(settings.url("base_url", "/payments")).json(body))
        url = answer.json({"url": str})["url"]
        return CheckoutSession(url, order.service_ref, answer.text())


class Verification(exports.Verification):
    def verify(self, service_ref: str) -> Payment:
        answer = send(http.get(settings.url("base_url", f"/payments/{http.encode(service_ref)}")))
        told = answer.json({"id": str, "status": str, "amount": int, "currency": str})
        metadata = told.get("metadata")
        return Payment(
            # Unknown statuses are pending: they prove neither success nor failure.
            status=STATUS.get(told["status"], PaymentStatus.PENDING),
            service_ref=service_ref,
            transaction_id=told["id"],
            amount=Money(told["amount"], told["currency"]),
            requested=None,
            fees_minor=None,
            channel="card",
            paid_at=None,
            message="",
            instrument=None,
            challenge_url=None,
            metadata=None if metadata is None else json.dumps(metadata),
            raw=answer.text(),
        )


class Notifications(exports.Notifications):
    def parse(self, headers: list[tuple[str, str]], body: bytes) -> list[Notification]:
        signature = http.header(headers, "x-signature") or ""
        if not vault.signed_hex("sha256", "webhook_secret", body, signature):
            raise Err(Refusal_Unauthentic())
        try:
            told = http.Response(200, [], body).json({"event": str, "reference": str})
        except Err:
            raise Err(Refusal_Malformed("not an event of the provider")) from None
        return [Notification(Subject.PAYMENT, told["event"], told["reference"], "")]


def send(request: http.Request) -> http.Response:
    """Sends a request with the account's key, and maps a status other than 2xx to a fault."""
    answer = request.bearer(vault.secret("api_key")).send()
    if 200 <= answer.status < 300:
        return answer
    if answer.status in (401, 403):
        raise faults.misconfigured("the provider does not accept the key")
    if answer.status in (400, 404, 409, 422):
        raise refusal(answer)
    raise faults.unavailable(f"the provider returned {answer.status}")


def refusal(answer: http.Response) -> Err[Fault]:
    """Only the provider itself can refuse: an error page counts as an outage."""
    told = answer.json({"code": str, "message": str})
    if told["code"] == "no_such_payment":
        return faults.not_found("the provider has no such payment")
    code = "duplicate-reference" if told["code"] == "reference_taken" else told["code"]
    return faults.refused(code, told["message"])
