"""The command line: one file a command."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """What the `hubbub` command runs."""
    try:
        import rich  # noqa: F401  # typer shows help without it; hubbub shows nothing without it

        from hubbub.cli.app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("rich", "typer"):
            raise
        print(f"hubbub: the command line needs {error.name}: pip install 'hubbub[analytics]'", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app()
