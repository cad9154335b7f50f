"""An SMS gateway. No number and no text stands in a fault or a log line."""

from componentize_py_types import Err
from tollhouse_plugin import faults, http, settings, vault
from wit_world import exports
from wit_world.exports.sms import TextMessage
from wit_world.imports.types import Fault

# Somebody waits for the message.
TIMEOUT_MS = 10_000


class Sms(exports.Sms):
    def send(self, message: TextMessage) -> str:
        body = {
            "to": message.to,
            "from": message.sender or settings.get("sender"),
            "text": message.text,
            "reference": message.reference,
        }
        request = http.post(settings.url("base_url", "/messages")).bearer(vault.secret("api_key"))
        answer = request.timeout_ms(TIMEOUT_MS).json(body).send()
        told = read(answer).json({"id": str, "state": str})
        # A success of HTTP is none for the one recipient.
        if told["state"] != "accepted":
            raise faults.other("the gateway did not accept the message")
        return told["id"]


def read(answer: http.Response) -> http.Response:
    """Says what an answer other than 2xx means."""
    if 200 <= answer.status < 300:
        return answer
    if answer.status in (401, 403):
        raise faults.misconfigured("the gateway does not accept the key")
    if answer.status in (400, 402, 422):
        raise refusal(answer.json({"code": str})["code"])
    raise faults.unavailable(f"the gateway answered {answer.status}")


def refusal(code: str) -> Err[Fault]:
    """The gateway's codes, not its words: those may name the number."""
    match code:
        case "bad_number":
            return faults.invalid("to", "the gateway does not take the number")
        case "opted_out":
            return faults.refused("opted-out", "the owner wants no messages")
        case "bad_sender":
            return faults.misconfigured("the gateway does not take the sender")
        case "no_credit":
            return faults.unavailable("the account has no credit", "no-credit")
        case _:
            return faults.other("the gateway refused the message")
