"""A mail server on loopback by aiosmtpd. It prints its port and then its events, as lines of JSON.

Arguments: plain, starttls or tls; a certificate and its key, or two dashes; a user and a password, or two dashes.
Some recipients determine the response: see RCPT and DATA.
"""

import asyncio
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult

kind, certificate, key, user, password = sys.argv[1:]
# Some tests log in without TLS.
warnings.simplefilter("ignore")
# Clients that abort a handshake are expected.
logging.getLogger("mail.log").setLevel(logging.CRITICAL)

RCPT = {
    "gone": "550 5.1.1 gone@example.com is not known here",
    "relay": "550 5.7.1 you may not send to relay@example.com",
    "later": "451 4.7.1 later@example.com is greylisted",
}
DATA = {
    "full": "552 5.2.2 full@example.com has no room",
    "busy": "452 4.3.1 no room for now",
}


def report(**what):
    print(json.dumps(what), flush=True)


def name(address):
    return address.split("@")[0]


class Handler:
    async def handle_EHLO(self, server, session, envelope, hostname, responses):
        session.host_name = hostname
        report(event="hello", peer=session.peer[1], name=hostname)
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):
        if name(address) == "unknown":
            return "553 5.1.8 this sender is not known here"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        if name(address) == "late":
            report(event="late", peer=session.peer[1])
            await asyncio.sleep(0.3)
            asyncio.get_running_loop().call_later(0.1, lambda: report(event="responded"))
        if name(address) in RCPT:
            return RCPT[name(address)]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        to = name(envelope.rcpt_tos[0])
        if to in DATA:
            return DATA[to]
        report(
            event="message",
            peer=session.peer[1],
            sender=envelope.mail_from,
            recipients=envelope.rcpt_tos,
            content=envelope.content.decode(),
            tls=session.ssl is not None or kind == "tls",
            user=session.auth_data,
        )
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    right = (data.login, data.password) == (user.encode(), password.encode())
    return AuthResult(success=right, handled=False, auth_data=data.login.decode() if right else None)


async def main():
    tls = None
    if kind != "plain":
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(certificate, key)

    def smtp():
        return SMTP(
            Handler(),
            hostname="localhost",
            tls_context=tls if kind == "starttls" else None,
            require_starttls=kind == "starttls",
            authenticator=authenticate,
            auth_required=user != "-",
            # aiosmtpd considers only TLS that was started by STARTTLS.
            auth_require_tls=kind == "starttls",
            enable_SMTPUTF8=True,
        )

    loop = asyncio.get_running_loop()
    # Ignores errors of broken connections.
    loop.set_exception_handler(lambda loop, context: None)
    implicit = tls if kind == "tls" else None
    server = await loop.create_server(smtp, "127.0.0.1", 0, ssl=implicit)
    report(event="listening", port=server.sockets[0].getsockname()[1])
    async with server:
        await server.serve_forever()


asyncio.run(main())
