"""Signed events."""

from collections.abc import Mapping
from typing import cast

from standardwebhooks import Webhook, WebhookVerificationError

from tollhouse.models import WebhookEvent


def verify_event(secret: str, headers: Mapping[str, str], raw_body: bytes | str) -> WebhookEvent:
    """Verifies signature and age of an event, and returns it.

    `raw_body` is the body as received: if it is parsed and serialized again, the signature does not
    match. `event["event"]` determines the type of `event["data"]`; ignore kinds that you do not
    handle. Raises `WebhookVerificationError` if the event is not authentic.
    """
    webhook = Webhook(secret)
    try:
        return cast(WebhookEvent, webhook.verify(raw_body, dict(headers)))
    except ValueError as error:  # the signature or the body cannot be decoded
        raise WebhookVerificationError("malformed event") from error
