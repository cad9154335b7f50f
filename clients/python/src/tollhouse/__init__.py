"""Client of Tollhouse. Its types and operations are generated from the OpenAPI document."""

from standardwebhooks import WebhookVerificationError

from tollhouse.client import Tollhouse
from tollhouse.errors import TollhouseError
from tollhouse.events import verify_event

__all__ = ["Tollhouse", "TollhouseError", "WebhookVerificationError", "verify_event"]
