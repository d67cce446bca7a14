"""A build backend that builds nothing: it tells pip the name and version an sdist states of itself.

Before pip saves an sdist it asks for the package's metadata: it fetches setuptools and runs the package's setup.py,
which an old package may not survive. We want the file, not the package. This file is put in the place of
`setuptools.build_meta` for that one call (see `hubbub.data.download`), so nothing is run and nothing more is fetched.
It stands alone: nothing of hubbub can be imported where it runs.
"""

from __future__ import annotations

import email
import sys
from pathlib import Path


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    """What a build needs: nothing.

    Example:
        >>> get_requires_for_build_wheel()
        []
    """
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """Copy the PKG-INFO of the sdist in the working directory to where PEP 517 wants it.

    Example:
        >>> import contextlib, tempfile
        >>> with tempfile.TemporaryDirectory() as sdist, contextlib.chdir(sdist):
        ...     _ = Path("PKG-INFO").write_text("Name: old-one\\nVersion: 1.0\\n")
        ...     prepare_metadata_for_build_wheel(sdist)
        'old_one-1.0.dist-info'
    """
    stated = Path("PKG-INFO").read_bytes()
    message = email.message_from_bytes(stated)
    name = message["Name"].replace("-", "_")  # pip takes what stands before the first hyphen for the name
    folder = f"{name}-{message['Version']}.dist-info"
    Path(metadata_directory, folder).mkdir()
    Path(metadata_directory, folder, "METADATA").write_bytes(stated)
    return folder


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Refuse: a data package is not built.

    Example:
        >>> build_wheel(".")
        Traceback (most recent call last):
            ...
        RuntimeError: this backend reads metadata only
    """
    raise RuntimeError("this backend reads metadata only")


# A package without a pyproject.toml is built by the object of this name.
__legacy__ = sys.modules[__name__]
