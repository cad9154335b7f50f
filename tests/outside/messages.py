"""Sends a message with PyPI's twilio or termii-py, or with Python's smtplib.

Reads {"library", "url" or "smtp", …} and writes the library's result.
"""

import json
import smtplib
import sys
from email.headerregistry import Address
from email.message import EmailMessage

from termii.messaging import Messaging
from termii.schemas.messaging import MessagingChannel
from termii.schemas.token import TokenType
from termii.token import Token
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client


class Redirected(TwilioHttpClient):
    """Sends requests for Twilio to the simulator."""

    def __init__(self, url):
        super().__init__(timeout=20)
        self.base_url = url

    def request(self, method, url, *args, **kwargs):
        return super().request(method, url.replace("https://api.twilio.com", self.base_url), *args, **kwargs)


def twilio(order):
    client = Client("AC" + "f" * 32, order.get("token", "token"), http_client=Redirected(order["url"]))
    try:
        sent = client.messages.create(to=order["to"], from_="+15005550006", body=order["text"])
    except TwilioRestException as error:
        return {"status": error.status, "code": error.code}
    shown = client.messages(sent.sid).fetch()
    return {"sent": sent.status, "shown": shown.status, "to": shown.to, "segments": shown.num_segments, "year": shown.date_sent.year}


def termii(order):
    client = Messaging()
    client.authenticate_direct("TLoutside", order["url"], "Lender")
    return client.send_message(receivers=order["to"], text=order["text"], channel=MessagingChannel.dnd)


def termii_token(order):
    client = Token()
    client.authenticate_direct("TLoutside", order["url"], "Lender")
    made = client.in_app_token(pin_type=TokenType.NUMERIC, phone_number=order["to"], pin_length=6)
    data = made["data"]
    return {"made": made, "verified": client.verify_token(pin_id=data["pin_id"], pin=data["otp"])["verified"]}


def mail(order):
    message = EmailMessage()
    message["From"] = Address("Adé Lending", "no-reply", "lender.example")
    message["To"] = ", ".join(order["to"])
    message["Subject"] = order["subject"]
    message.set_content(order["text"])
    message.add_alternative(order["html"], subtype="html")
    host, port = order["smtp"].split(":")
    with smtplib.SMTP(host, int(port), timeout=20) as server:
        server.login("anybody", "anything")
        try:
            return {"refused": {to: code for to, (code, _) in server.send_message(message).items()}}
        except smtplib.SMTPRecipientsRefused as error:
            return {"refused": {to: code for to, (code, _) in error.recipients.items()}}


LIBRARIES = {"twilio": twilio, "termii": termii, "termii tokens": termii_token, "smtplib": mail}

order = json.load(sys.stdin)
print(json.dumps(LIBRARIES[order["library"]](order)))
