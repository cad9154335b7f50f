"""An SMS gateway. Faults and log lines never contain the number or the text."""

from componentize_py_types import Err
from tollhouse_plugin import faults, http, settings, vault
from wit_world import exports
from wit_world.exports.sms import TextMessage
from wit_world.imports.types import Fault

# Short, because a person waits for the message.
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
        response = request.timeout_ms(TIMEOUT_MS).json(body).send()
        accepted = read(response).json({"id": str, "state": str})
        # HTTP success does not mean that the recipient was accepted.
        if accepted["state"] != "accepted":
            raise faults.other("the gateway did not accept the message")
        return accepted["id"]


def read(response: http.Response) -> http.Response:
    """Maps a status other than 2xx to a fault."""
    if 200 <= response.status < 300:
        return response
    if response.status in (401, 403):
        raise faults.misconfigured("the gateway does not accept the key")
    if response.status in (400, 402, 422):
        raise refusal(response.json({"code": str})["code"])
    raise faults.unavailable(f"the gateway returned {response.status}")


def refusal(code: str) -> Err[Fault]:
    """Uses the gateway's codes and not its messages, which may contain the number."""
    match code:
        case "bad_number":
            return faults.invalid("to", "the gateway rejected the number")
        case "opted_out":
            return faults.refused("opted-out", "the recipient has opted out")
        case "bad_sender":
            return faults.misconfigured("the gateway rejected the sender")
        case "no_credit":
            return faults.unavailable("the account has no credit", "no-credit")
        case _:
            return faults.other("the gateway refused the message")
