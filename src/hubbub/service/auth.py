"""Tokens: who holds one may read results."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from pathlib import Path

from starlette.requests import Request

from hubbub.core.errors import InvalidValue
from hubbub.core.random import Random
from hubbub.service.problems import Problem

_SHORTEST = 16


class Tokens:
    """The tokens that open query routes: as a bearer token, or as the password that a browser asks for."""

    def __init__(self, tokens: list[str]) -> None:
        for token in tokens:
            if len(token) < _SHORTEST:
                raise InvalidValue("token", "one that is not shown", f"at least {_SHORTEST} characters")
        # Hashes have one length, so that the time of a comparison does not depend on a token's.
        self._digests = [_digest(token) for token in tokens]

    def allow(self, header: str) -> bool:
        """Whether an Authorization header holds a valid token. The time it takes does not depend on the token."""
        offered = _digest(_offered_token(header))
        return any([hmac.compare_digest(offered, digest) for digest in self._digests])  # noqa: C419 - all are compared

    def check(self, request: Request) -> None:
        """Refuse a request without a valid token, and one that a page of another site made."""
        if from_another_site(request):
            raise Problem(403, "foreign_site")
        if not self.allow(request.headers.get("authorization", "")):
            # One header each: browsers read only the first challenge of a header.
            challenges = ['Bearer realm="hubbub"', 'Basic realm="hubbub", charset="UTF-8"']
            raise Problem(401, "no_token", headers=[("WWW-Authenticate", challenge) for challenge in challenges])


def from_another_site(request: Request) -> bool:
    """Whether a page of another site made a request: browsers send a user's credentials whichever site asks.

    Browsers say so in one of two headers. Programs send neither, and have no credentials but their own.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site not in ("same-origin", "none")
    origin = request.headers.get("origin")  # plain HTTP has no sec-fetch-site
    return origin is not None and origin.partition("://")[2].lower() != request.headers.get("host", "").lower()


def token_file(path: Path) -> str:
    """The token in a file. The first call makes the file, readable by its owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    token = Random().bytes(24).hex()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _offered_token(header: str) -> str:
    scheme, _, value = header.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
