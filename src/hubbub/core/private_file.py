"""Files that only their owner may read, made without ever opening an existing file."""

import errno
import os

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def make_private_file(path: str | os.PathLike[str]) -> bool:
    """Make an empty file that only its owner may read, unless a file of this name exists; whether it was made.

    An existing file is never opened, not even for a moment: POSIX drops all locks of a process on a file as soon as the
    process closes any descriptor of it, and SQLite uses such locks. So the new file gets its name (or that of the
    link's target) only after it is closed. Of several processes or threads that make it at once, one succeeds.
    """
    target = os.path.realpath(path)
    if os.path.lexists(target):
        return False
    fresh = f"{target}.{os.urandom(8).hex()}.new"
    try:
        _make(fresh)
        try:
            os.link(fresh, target)
        finally:
            os.unlink(fresh)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        return _make_without_links(target)
    return True


def name_private_file(fresh: str, path: str | os.PathLike[str]) -> bool:
    """Rename a finished, closed file, unless a file of the new name exists; whether it was renamed.

    So a file exists complete or not at all, whenever its maker is stopped. `fresh` no longer exists afterwards.
    """
    target = os.path.realpath(path)
    try:
        os.link(fresh, target)
    except FileExistsError:
        os.unlink(fresh)
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS or os.path.lexists(target):
            os.unlink(fresh)
            raise
        os.rename(fresh, target)
        return True
    os.unlink(fresh)
    return True


def write_private_file(path: str | os.PathLike[str], content: bytes) -> bool:
    """Write a file that only its owner may read, completely or not at all, unless it exists; whether it was written."""
    fresh = f"{os.path.realpath(path)}.{os.urandom(8).hex()}.new"
    make_private_file(fresh)
    try:
        with open(fresh, "r+b") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(fresh)
        raise
    return name_private_file(fresh, path)


def replace_private_file(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file that only its owner may read, completely or not at all; it replaces a file of this name."""
    fresh = f"{os.path.realpath(path)}.{os.urandom(8).hex()}.new"
    if write_private_file(fresh, content):
        os.replace(fresh, path)


def _make_without_links(target: str) -> bool:
    """For a disk without links (FAT). Another thread could lock the new file only between its creation and its
    closing."""
    try:
        _make(target)
    except FileExistsError:
        return False
    return True


def _make(path: str) -> None:
    descriptor = os.open(path, _NEW, 0o600)
    os.close(descriptor)
    os.chmod(path, 0o600)  # whatever the umask takes away from its owner
