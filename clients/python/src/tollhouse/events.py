"""Signed events."""

from collections.abc import Mapping
from typing import cast

from standardwebhooks import Webhook, WebhookVerificationError

from tollhouse.models import WebhookEvent


def verify_event(secret: str, headers: Mapping[str, str], raw_body: bytes | str) -> WebhookEvent:
    """Verify signature and age of an event, and return it.

    `raw_body` is the body as it was received: parsed and serialized again, it has another
    signature. `event["event"]` determines the type of `event["data"]`; ignore kinds that you do not
    handle. Raises `WebhookVerificationError` if the event is not authentic.
    """
    webhook = Webhook(secret)
    try:
        return cast(WebhookEvent, webhook.verify(raw_body, dict(headers)))
    except ValueError as error:  # a signature or a body that cannot be decoded
        raise WebhookVerificationError("malformed event") from error
