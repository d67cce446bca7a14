"""A build backend that builds nothing: it tells pip the name and version that are stated in an sdist.

Before pip saves an sdist it asks for the package's metadata: it fetches setuptools and runs the package's setup.py,
which fails for some old packages. We want the file, not the package. For that one call this file replaces
`setuptools.build_meta` (see `hubbub.data.packages`), so that nothing is run and nothing more is fetched. It imports
nothing of hubbub, which is not importable where it runs.
"""

import email
import sys
from pathlib import Path


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    """The requirements of a build: none.

    Example:
        >>> get_requires_for_build_wheel()
        []
    """
    return []


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """Copy the PKG-INFO of the sdist in the working directory to the place that PEP 517 prescribes.

    Example:
        >>> import contextlib, tempfile
        >>> with tempfile.TemporaryDirectory() as sdist, contextlib.chdir(sdist):
        ...     _ = Path("PKG-INFO").write_text("Name: old-one\\nVersion: 1.0\\n")
        ...     prepare_metadata_for_build_wheel(sdist)
        'old_one-1.0.dist-info'
    """
    metadata = Path("PKG-INFO").read_bytes()
    message = email.message_from_bytes(metadata)
    name = message["Name"].replace("-", "_")  # pip reads the folder's name up to the first hyphen as the package's
    folder = f"{name}-{message['Version']}.dist-info"
    Path(metadata_directory, folder).mkdir()
    Path(metadata_directory, folder, "METADATA").write_bytes(metadata)
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


# pip uses the object of this name for a package without a pyproject.toml.
__legacy__ = sys.modules[__name__]
