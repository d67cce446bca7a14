"""A folder with everything that the parties of a run need: certificates, keys, shares, configurations."""

import datetime
import socket
from pathlib import Path

import numpy as np
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hubbub import Random
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.keys import write_keys
from hubbub.shuffle.peos import divide


def certificate(folder: Path, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .sign(key, hashes.SHA256())
    )
    (folder / f"{name}.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def free_ports(count: int) -> list[int]:
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return ports


def prepare(
    folder: Path,
    reports: np.ndarray,
    *,
    shufflers: int = 3,
    fakes: int = 0,
    least: int = 1,
    seconds: int = 30,
    bits: int = 2048,
) -> list[Path]:
    """The configurations of all parties, the server's last."""
    key = DGKPrivate.generate(bits)
    write_keys(key, folder / "private.json", folder / "public.json")
    for number, share in enumerate(divide(reports, shufflers, key.public, Random(seed=1))):
        (folder / f"{number}.shares").write_bytes(share.to_bytes())
    ports = free_ports(shufflers + 1)
    for number in range(shufflers + 1):
        certificate(folder, f"party-{number}")
    parties = "".join(
        f'[[parties]]\nhost = "127.0.0.1"\nport = {port}\ncertificate = "party-{number}.pem"\n'
        for number, port in enumerate(ports)
    )
    configs = []
    for number in range(shufflers + 1):
        server = number == shufflers
        own = 'reports = "reports.bin"' if server else f'shares = "{number}.shares"'
        encryption = "private.json" if server else "public.json"
        text = f'me = {number}\nprivate_key = "party-{number}.key"\nencryption_key = "{encryption}"\n{own}\n'
        text += f"fakes = {fakes}\nleast = {least}\nseconds = {seconds}\n{parties}"
        configs.append(folder / f"{number}.toml")
        configs[-1].write_text(text)
    return configs
