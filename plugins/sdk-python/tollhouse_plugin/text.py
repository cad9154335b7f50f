"""Words for operators: what an upstream said, made fit for a log."""

import re

MESSAGE_CHARS = 160
CODE_CHARS = 64


def short(told: str) -> str:
    """An upstream's text, cut to 160 characters, with everything taken out that looks like an e-mail address, a number of a person
    or an account, or a code that could be a token."""
    kept = " ".join("[...]" if _is_private(word) else word for word in told.split())
    return kept if len(kept) <= MESSAGE_CHARS else f"{kept[:MESSAGE_CHARS]}..."


def code(told: str) -> str:
    """An upstream's error code: letters, digits and `-_.:` only, at most 64 of them."""
    return re.sub(r"[^A-Za-z0-9_.:-]", "", told)[:CODE_CHARS]


def _is_private(word: str) -> bool:
    digits = sum(char in "0123456789" for char in word)
    return "@" in word or digits >= 6 or len(word) > 32 or (digits > 0 and len(word) >= 10)
