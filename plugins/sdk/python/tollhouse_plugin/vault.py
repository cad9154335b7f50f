"""Operations on secrets, which never enter the sandbox.

Names are those of the manifest's `secrets`.
"""

import base64
import binascii
import hmac as compare
from collections.abc import Callable

from wit_world.imports import vault as wire
from wit_world.imports import vault_transform as transform_wire

Step = str | tuple[str, str]
"""A step's name, as in `"base64"`, or a pair with a key's name, as in `("rsa-sha256", "key")`."""


def secret(name: str) -> str:
    """Returns a placeholder for a secret, valid for this call only.

    Put it where the manifest binds the secret: in a header value or the body.
    """
    return wire.secret(name)


def basic(user: str, password: str) -> str:
    """Returns a placeholder for the credentials of HTTP basic authentication, without "Basic".

    `password` names a secret; `user` names a secret or a setting.
    """
    return wire.basic(user, password)


def transform(template: str | bytes, *steps: Step) -> str:
    """Applies the steps to a template and returns a placeholder for the result.

    It is for upstreams that require a secret in another form. Placeholders in the template stand for
    their values; the result may be sent where all of its secrets may be. The result must be text:
    end with an encoding. The signature of a JWT is
    `transform(token, ("rsa-sha256", "private_key"), "base64url")`.
    """
    data = template.encode() if isinstance(template, str) else template
    pairs = [(step, None) if isinstance(step, str) else step for step in steps]
    return transform_wire.transform(data, [transform_wire.Step(name, key) for name, key in pairs])


def hmac(algorithm: str, secret: str, data: bytes) -> bytes:
    """Computes the HMAC of `data` under a secret. The algorithm is "sha256" or "sha512"."""
    return wire.hmac(algorithm, secret, data)


def matches(secret: str, candidate: bytes) -> bool:
    """Returns whether `candidate` equals the secret, in constant time."""
    return wire.matches(secret, candidate)


def signed_hex(algorithm: str, secret: str, data: bytes, signature: str) -> bool:
    """Returns whether `signature` is the HMAC of `data` in hexadecimal digits, in constant time."""
    return _same(hmac(algorithm, secret, data), binascii.unhexlify, signature)


def signed_base64(algorithm: str, secret: str, data: bytes, signature: str) -> bool:
    """Returns whether `signature` is the HMAC of `data` in base64, in constant time."""
    return _same(hmac(algorithm, secret, data), base64.b64decode, signature)


def _same(expected: bytes, decode: Callable[[str], bytes], signature: str) -> bool:
    try:
        return compare.compare_digest(expected, decode(signature.strip()))
    except ValueError:
        return False
