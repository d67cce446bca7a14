"""The command line: one file per command."""

import sys

__all__ = ["main"]

_EXTRAS = {
    **dict.fromkeys(("check", "client"), "cli"),
    **dict.fromkeys(("serve", "backup", "restore", "shuffler"), "server"),
    **dict.fromkeys(("sql", "table"), "sql"),
    "demo": "demo",
}
"""The extras of commands; those of all others are in `analytics`."""


def main() -> None:
    """What the `hubbub` command runs."""
    try:
        import rich  # noqa: F401  # typer shows help without it; hubbub shows nothing without it

        from hubbub.cli.app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("rich", "typer"):
            raise
        extra = _EXTRAS.get(sys.argv[1], "analytics") if sys.argv[1:] else "cli"
        print(f"hubbub: the command line needs {error.name}: pip install 'hubbub-ldp[{extra}]'", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app(prog_name="hubbub")
