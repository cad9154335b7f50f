"""Looks up a person with PyPI's dojah-python-sdk.

Reads {"url", "api", "function", "arguments"} and writes the library's result: {"entity": …}, or {"status", "error"}.
"""

import json
import sys

from dojah_client import Dojah
from dojah_client.exceptions import ApiException

order = json.load(sys.stdin)
client = Dojah(host=order["url"], authorization="test_sk_outside", app_id="outside")
try:
    response = getattr(getattr(client, order["api"]), order["function"])(**order["arguments"])
    print(json.dumps({"entity": response.body["entity"]}))
except ApiException as error:
    print(json.dumps({"status": error.status, "error": error.body["error"]}))
