"""Work with secrets that never enter the sandbox. Names are those of the manifest's `secrets`."""

import base64
import binascii
import hmac as compare
from collections.abc import Callable

from wit_world.imports import vault as wire


def secret(name: str) -> str:
    """A placeholder for a secret's value, good for this call alone, to be put where the manifest binds the secret."""
    return wire.secret(name)


def basic(user: str, password: str) -> str:
    """A placeholder for the credentials of HTTP basic authentication, without the word "Basic". Both arguments are names:
    `password` of a secret, `user` of a secret or a setting."""
    return wire.basic(user, password)


def hmac(algorithm: str, secret: str, data: bytes) -> bytes:
    """The keyed hash of `data`; algorithms are "sha256" and "sha512"."""
    return wire.hmac(algorithm, secret, data)


def matches(secret: str, candidate: bytes) -> bool:
    """Whether `candidate` is the secret; compared in constant time."""
    return wire.matches(secret, candidate)


def signed_hex(algorithm: str, secret: str, data: bytes, signature: str) -> bool:
    """Whether `signature` is the keyed hash of `data` in hexadecimal digits of either case; compared in constant time."""
    return _same(hmac(algorithm, secret, data), binascii.unhexlify, signature)


def signed_base64(algorithm: str, secret: str, data: bytes, signature: str) -> bool:
    """Whether `signature` is the keyed hash of `data` in base64; compared in constant time."""
    return _same(hmac(algorithm, secret, data), base64.b64decode, signature)


def _same(expected: bytes, decode: Callable[[str], bytes], signature: str) -> bool:
    try:
        return compare.compare_digest(expected, decode(signature.strip()))
    except ValueError:
        return False
