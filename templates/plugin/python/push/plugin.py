"""A payment provider with push payments: the payer confirms on a phone."""

from componentize_py_types import Err
from tollhouse_plugin import faults, http, settings, state, vault
from wit_world import exports
from wit_world.exports.sessions import NextStep_Prompt, Session, SessionOrder
from wit_world.imports.payments import KnownSession, Payment, PaymentStatus
from wit_world.imports.types import Fault, Money

STATUS = {
    "paid": PaymentStatus.SUCCESS,
    "declined": PaymentStatus.FAILED,
    "expired": PaymentStatus.FAILED,
    "refunded": PaymentStatus.REVERSED,
}


class Sessions(exports.Sessions):
    """The state of a session is the provider's id, without which a push cannot be queried."""

    def start(self, order: SessionOrder) -> Session:
        body = {
            "reference": order.service_ref,
            "amount": order.amount.minor,
            "currency": order.amount.currency,
            "phone": order.phone,
            "description": order.narration,
            "callback_url": order.notification_url,
        }
        response = send(http.post(settings.url("base_url", "/pushes")).json(body))
        push = response.json({"id": str})
        return Session(
            next=NextStep_Prompt("Enter your PIN on your phone to confirm the payment."),
            service_ref=order.service_ref,
            state=state.encode({"id": push["id"]}),
            raw=response.text(),
        )

    def verify(self, session: KnownSession) -> Payment:
        # If the response of `start` was lost, only a callback has the id.
        known = state.decode(session.state) or state.decode(session.notified)
        if known is None:
            raise faults.not_found("the provider's id of the push is not known")
        url = settings.url("base_url", f"/pushes/{http.encode(known['id'])}")
        response = send(http.get(url))
        push = response.json({"reference": str, "status": str, "amount": int, "currency": str})
        if push["reference"] != session.service_ref:
            raise faults.unavailable("the provider returned another payment's push")
        return Payment(
            # Unknown statuses are pending: they prove neither success nor failure.
            status=STATUS.get(push["status"], PaymentStatus.PENDING),
            service_ref=session.service_ref,
            transaction_id=known["id"],
            amount=Money(push["amount"], push["currency"]),
            requested=None,
            fees_minor=None,
            channel="mobile_money",
            paid_at=None,
            message="",
            instrument=None,
            challenge_url=None,
            metadata=None,
            raw=response.text(),
        )

    def receive(self, session: KnownSession, headers: list[tuple[str, str]], body: bytes) -> bytes:
        """Reads the id from a callback. It is not signed: `verify` checks the push with this id."""
        try:
            callback = http.Response(200, [], body).json({"id": str, "reference": str})
        except Err:
            raise faults.invalid("body", "the body is not a callback of the provider") from None
        if callback["reference"] != session.service_ref:
            raise faults.invalid("body", "the callback is that of another push")
        return state.encode({"id": callback["id"]})


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
    code, message = error["code"], error["message"]
    if code == "no_such_push":
        return faults.not_found("the provider has no such push")
    if code == "unsupported_phone":
        return faults.because(faults.invalid("phone", message), "unsupported-number")
    return faults.refused("duplicate-reference" if code == "reference_taken" else code, message)
