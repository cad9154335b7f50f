"""Makes one call by the Python client. Reads {"action", …} and writes {"result"} or {"error"}."""

import base64
import json
import sys
from typing import Any

from tollhouse import Tollhouse, TollhouseError, WebhookVerificationError, verify_event
from tollhouse.models import NewPayment

given = json.load(sys.stdin)


def initialize(tollhouse: Tollhouse) -> object:
    payment: NewPayment = {
        "email": "ada@example.com",
        "currency": "NGN",
        "amount": given["amount"],
        "checkout": {"success_url": "http://127.0.0.1/"},
    }
    if reference := given.get("reference"):
        payment["reference"] = reference
    return tollhouse.payments.initialize(payment)


def verify(_: Tollhouse) -> object:
    event = verify_event(given["secret"], given["headers"], base64.b64decode(given["body"]))
    if event["event"] != "payment.success":
        raise ValueError(event["event"])
    return {"reference": event["data"]["reference"], "amount": event["data"]["amount"]}


def act(tollhouse: Tollhouse) -> object:
    match given["action"]:
        case "initialize":
            return initialize(tollhouse)
        case "fetch":
            return tollhouse.payments.fetch_by_reference(given["reference"])
        case "list":
            return tollhouse.payments.list({"status": "pending", "limit": 5})
        case "users":
            return tollhouse.users.list({"metadata": {"metadata.plan": "gold"}})
        case "send_code":
            tollhouse.users.send_email(given["user_id"])
            return None
        case "verify":
            return verify(tollhouse)
    raise ValueError(given["action"])


options = given["options"]
limit: dict[str, Any] = {"max_attempts": options["maxAttempts"]} if "maxAttempts" in options else {}
with Tollhouse(api_key=options["apiKey"], base_url=options["baseUrl"], **limit) as tollhouse:
    try:
        print(json.dumps({"result": act(tollhouse)}))
    except TollhouseError as error:
        names = {"requestId": error.request_id, "idempotencyKey": error.idempotency_key}
        seen = {"status": error.status, "message": error.message, "fields": error.fields}
        print(json.dumps({"error": seen | names}))
    except WebhookVerificationError as error:
        print(json.dumps({"error": {"name": type(error).__name__}}))
