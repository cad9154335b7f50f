"""Checks a delivery with PyPI's standardwebhooks.

Reads {"secret", "headers", "body" in base64} and writes {"event": …}, or {} if the delivery is rejected.
"""

import base64
import json
import sys

from standardwebhooks import Webhook, WebhookVerificationError

delivery = json.load(sys.stdin)
try:
    event = Webhook(delivery["secret"]).verify(base64.b64decode(delivery["body"]), delivery["headers"])
    print(json.dumps({"event": event}))
except WebhookVerificationError:
    print("{}")
