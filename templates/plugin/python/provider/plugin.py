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
        response = send(http.post(settings.url("base_url", "/payments")).json(body))
        url = response.json({"url": str})["url"]
        return CheckoutSession(url, order.service_ref, response.text())


class Verification(exports.Verification):
    def verify(self, service_ref: str) -> Payment:
        response = send(http.get(settings.url("base_url", f"/payments/{http.encode(service_ref)}")))
        payment = response.json({"id": str, "status": str, "amount": int, "currency": str})
        metadata = payment.get("metadata")
        return Payment(
            # Unknown statuses are pending: they prove neither success nor failure.
            status=STATUS.get(payment["status"], PaymentStatus.PENDING),
            service_ref=service_ref,
            transaction_id=payment["id"],
            amount=Money(payment["amount"], payment["currency"]),
            requested=None,
            fees_minor=None,
            channel="card",
            paid_at=None,
            message="",
            instrument=None,
            challenge_url=None,
            metadata=None if metadata is None else json.dumps(metadata),
            raw=response.text(),
        )


class Notifications(exports.Notifications):
    def parse(self, headers: list[tuple[str, str]], body: bytes) -> list[Notification]:
        signature = http.header(headers, "x-signature") or ""
        if not vault.signed_hex("sha256", "webhook_secret", body, signature):
            raise Err(Refusal_Unauthentic())
        try:
            event = http.Response(200, [], body).json({"event": str, "reference": str})
        except Err:
            raise Err(Refusal_Malformed("not an event of the provider")) from None
        return [Notification(Subject.PAYMENT, event["event"], event["reference"], "")]


def send(request: http.Request) -> http.Response:
    """Sends a request with the account's key, and maps a status other than 2xx to a fault."""
    response = request.bearer(vault.secret("api_key")).send()
    if 200 <= response.status < 300:
        return response
    if response.status in (401, 403):
        raise faults.misconfigured("the provider does not accept the key")
    if response.status in (400, 404, 409, 422):
        raise refusal(response)
    raise faults.unavailable(f"the provider returned {response.status}")


def refusal(response: http.Response) -> Err[Fault]:
    """Only the provider itself can refuse: an error page counts as an outage."""
    error = response.json({"code": str, "message": str})
    if error["code"] == "no_such_payment":
        return faults.not_found("the provider has no such payment")
    code = "duplicate-reference" if error["code"] == "reference_taken" else error["code"]
    return faults.refused(code, error["message"])
