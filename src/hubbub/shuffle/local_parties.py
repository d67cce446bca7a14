"""Prepares a trial run with all parties on this machine: certificates, keys, shares and settings in a folder."""

from __future__ import annotations

import datetime
import socket
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.random.source import Random
from hubbub.shuffle.dgk import MODULUS_BITS, DGKPrivate
from hubbub.shuffle.keys import spread_public, write_keys
from hubbub.shuffle.oblivious import divide


def prepare_parties(
    folder: Path,
    reports: NDArray[np.uint64],
    *,
    shufflers: int = 3,
    fakes: int = 0,
    least: int = 1,
    seconds: int = 600,
    attempts: int = 3,
    processes: int = 0,
    bits: int = MODULUS_BITS,
    rng: Random,
) -> list[Path]:
    """Write what each party needs to shuffle some reports; returns their configurations, the server's last.

    The shares of devices are made here too: whoever can read the folder knows all reports.
    """
    key = DGKPrivate.generate(bits)
    write_keys(key, folder / "private.json", folder / "public.json")
    with spread_public(key.public, processes) as public:
        for number, share in enumerate(divide(reports, shufflers, public, rng)):
            (folder / f"{number}.shares").write_bytes(share.to_bytes())
    parties = ""
    for number, port in enumerate(free_ports(shufflers + 1)):
        write_certificate(folder, f"party-{number}")
        parties += f'[[parties]]\nhost = "127.0.0.1"\nport = {port}\ncertificate = "party-{number}.pem"\n'
    settings = (
        f"fakes = {fakes}\nleast = {least}\nseconds = {seconds}\nattempts = {attempts}\nprocesses = {processes}\n"
    )
    configs = []
    for number in range(shufflers + 1):
        server = number == shufflers
        own = 'reports = "reports.bin"' if server else f'shares = "{number}.shares"'
        encryption = "private.json" if server else "public.json"
        text = f'me = {number}\nprivate_key = "party-{number}.key"\nencryption_key = "{encryption}"\n{own}\n'
        configs.append(folder / f"{number}.toml")
        configs[-1].write_text(text + settings + parties, encoding="utf-8")
    return configs


def write_certificate(folder: Path, name: str) -> None:
    """Write a key and a self-signed certificate, valid for two days: `name.key` and `name.pem`."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(pem)


def free_ports(count: int) -> list[int]:
    """Free ports of this machine."""
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(holder.getsockname()[1]) for holder in holders]
    for holder in holders:
        holder.close()
    return ports
