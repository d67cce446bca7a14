"""Files of DGK keys: JSON with numbers in hexadecimal."""

from __future__ import annotations

import json
from pathlib import Path

from hubbub.core.errors import InvalidValue
from hubbub.core.private_file import write_private_file
from hubbub.shuffle.dgk import DGKPrivate, DGKPublic

_PUBLIC = ("modulus", "g", "h", "subgroup_bits")
_PRIVATE = ("p", "v_p")


def write_keys(key: DGKPrivate, private: Path, public: Path) -> None:
    """Write the private and the public key to new files; an existing file is an error.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     key, home = DGKPrivate.generate(2048), Path(folder)
        ...     write_keys(key, home / "private.json", home / "public.json")
        ...     read_private(home / "private.json") == key, read_public(home / "public.json") == key.public
        (True, True)
    """
    public_numbers = {name: hex(getattr(key.public, name)) for name in _PUBLIC}
    secret = public_numbers | {name: hex(getattr(key, name)) for name in _PRIVATE}
    for path, content in ((private, secret), (public, public_numbers)):
        if not write_private_file(path, json.dumps(content).encode()):
            raise InvalidValue("key", str(path), "a file that is not there yet")


def read_public(path: Path) -> DGKPublic:
    """The public half."""
    numbers = _numbers(path, _PUBLIC)
    return DGKPublic(**numbers)


def read_private(path: Path) -> DGKPrivate:
    """The private key, with its public half."""
    numbers = _numbers(path, _PUBLIC + _PRIVATE)
    p, v_p = numbers.pop("p"), numbers.pop("v_p")
    public = DGKPublic(**numbers)
    if public.modulus % p or not 1 < p < public.modulus or (p - 1) % (v_p << 64):
        raise InvalidValue("key", str(path), "a private key whose numbers fit together")
    return DGKPrivate(public, p, v_p)


def _numbers(path: Path, names: tuple[str, ...]) -> dict[str, int]:
    try:
        numbers = json.loads(path.read_text(encoding="ascii"))
        return {name: int(numbers[name], 16) for name in names}
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidValue("key", str(path), f"a file with {', '.join(names)}") from None
