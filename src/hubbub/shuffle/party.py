"""The parties of a run: their addresses, and the certificates that identify them."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hubbub.core.errors import InvalidValue


@dataclass(frozen=True)
class Party:
    """The address of a party, and the certificate that identifies it."""

    host: str
    port: int
    certificate: Path


def tls_context(me: int, parties: Sequence[Party], private_key: Path, *, serving: bool) -> ssl.SSLContext:
    """The TLS settings of a party: TLS 1.3, its own certificate, and no other peers than the listed ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # a peer is identified by its certificate, which is compared as a whole
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_cert_chain(parties[me].certificate, private_key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidValue("private_key", str(private_key), f"the key of this party's certificate: {error}") from None
    for party in parties:
        context.load_verify_locations(party.certificate)
    return context


def certificate_bytes(path: Path) -> bytes:
    """A certificate in DER, as connections show it."""
    try:
        return ssl.PEM_cert_to_DER_cert(path.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise InvalidValue("certificate", str(path), f"a certificate in PEM: {error}") from None
