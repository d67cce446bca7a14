"""The error of data sets that cannot be fetched, or whose files have changed."""

from __future__ import annotations

from hubbub.core.errors import HubbubError


class DataError(HubbubError):
    """A data set could not be fetched, or its files are not the ones recorded.

    Example:
        >>> raise DataError("emoji: the package has another sha256")
        Traceback (most recent call last):
            ...
        hubbub.data.errors.DataError: emoji: the package has another sha256
    """
