"""A command of `hubbub` that stops when its standard input ends: whoever started it need not live to stop it.

python -m hubbub.cli.until_input_ends serve survey.toml
"""

from __future__ import annotations

import os
import signal
import threading


def _stop_with_input() -> None:
    while os.read(0, 1024):  # not sys.stdin: its lock, held here, would spoil the exit
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Run the command that the arguments say."""
    from hubbub.cli import main as command

    threading.Thread(target=_stop_with_input, daemon=True).start()
    command()


if __name__ == "__main__":
    main()
