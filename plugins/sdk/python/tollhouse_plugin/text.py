"""Sanitizes upstream messages and codes for logs."""

import re

MESSAGE_CHARS = 160
CODE_CHARS = 64


def short(text: str) -> str:
    """Truncates an upstream's message to 160 characters, and removes private data.

    Each word that looks like an e-mail address, a personal or account number, or a token is
    replaced with `[...]`.
    """
    kept = " ".join("[...]" if _is_private(word) else word for word in text.split())
    return kept if len(kept) <= MESSAGE_CHARS else f"{kept[:MESSAGE_CHARS]}..."


def code(text: str) -> str:
    """Reduces an upstream's error code to ASCII letters, digits and `-_.:`, at most 64
    characters.
    """
    return re.sub(r"[^A-Za-z0-9_.:-]", "", text)[:CODE_CHARS]


def _is_private(word: str) -> bool:
    digits = sum(char in "0123456789" for char in word)
    return "@" in word or digits >= 6 or len(word) > 32 or (digits > 0 and len(word) >= 10)
