"""A command of `hubbub` that stops when its standard input ends: whoever started it need not live to stop it.

python -m hubbub.cli.until_input_ends serve survey.toml
"""

from hubbub.demo.programs import terminate_when_input_ends


def main() -> None:
    """Run the command that the arguments say."""
    from hubbub.cli import main as command

    terminate_when_input_ends()
    command()


if __name__ == "__main__":
    main()
