"""Signatures of deliveries: HMAC-SHA256 over id, time and exact bytes, as in the Standard Webhooks specification."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence

from hubbub.core.errors import InvalidValue

PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64
_MOST = 2


def signature(secret: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    """The signature of a delivery, for the header `webhook-signature`."""
    signed = b"%s.%d.%s" % (delivery.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def read_secrets(field: str, text: str) -> tuple[bytes, ...]:
    """The secrets in a text, one a line; two of them while a receiver changes from one to the other."""
    secrets = tuple(_secret(field, line) for line in text.split())
    _check(field, secrets)
    return secrets


def _secret(field: str, line: str) -> bytes:
    try:
        secret = base64.b64decode(line.removeprefix(PREFIX), validate=True) if line.startswith(PREFIX) else b""
    except (binascii.Error, ValueError):
        secret = b""
    if not _SHORTEST <= len(secret) <= _LONGEST:
        allowed = f"{PREFIX} and the base64 of {_SHORTEST} to {_LONGEST} random bytes"
        raise InvalidValue(field, "a secret that is not shown", allowed)
    return secret


def _check(field: str, secrets: Sequence[bytes]) -> None:
    if not 1 <= len(secrets) <= _MOST:
        raise InvalidValue(field, f"{len(secrets)} secrets", f"one, or {_MOST} while a receiver changes over")
