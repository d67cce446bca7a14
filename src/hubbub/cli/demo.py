"""`hubbub demo`: the whole system at work, with simulated devices."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from hubbub.cli.options import AsJson, Seed
from hubbub.cli.output import say
from hubbub.core.errors import InvalidValue, needs

HEADLESS_SECONDS = 20.0


_Devices = Annotated[
    int | None,
    Option(
        "--devices",
        help="How many devices answer each of the five collections.",
        show_default="8000; 600 with --trust shuffle, 1500 with --stream, 200 with oblivious",
    ),
]
_Seconds = Annotated[float | None, Option("--seconds", help="How long it runs.", min=1.0, show_default="until Ctrl-C")]
_Headless = Annotated[
    bool,
    Option("--headless", help="Print only the result, after --seconds or once the blizzard's alarm is raised."),
]
_Step = Annotated[
    str | None,
    Option("--step", help="How often devices answer.", show_default="4s; 8s with --trust shuffle, 30s with oblivious"),
]
_Trust = Annotated[
    str,
    Option(
        "--trust",
        help="local: everyone reports to the collector. shuffle: one step, by two shufflers. oblivious: one step, "
        "by three shufflers that get shares of each report.",
    ),
]
_Stream = Annotated[bool, Option("--stream", help="With --trust shuffle: a value that is followed over four steps.")]
_Workers = Annotated[int, Option("--workers", help="In how many processes the devices of each are.")]
_Port = Annotated[int, Option("--port", help="The page's port; 0 takes a free one.", min=0, max=65535)]
_Folder = Annotated[Path | None, Option("--folder", help="Keep the store here.", show_default="a temporary one")]
_Browser = Annotated[bool, Option("--open", help="Open the page in a browser.")]


def demo(
    devices: _Devices = None,
    seconds: _Seconds = None,
    headless: _Headless = False,
    step: _Step = None,
    trust: _Trust = "local",
    stream: _Stream = False,
    workers: _Workers = 2,
    port: _Port = 0,
    folder: _Folder = None,
    browser: _Browser = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Watch the whole system: a collector, its page, and thousands of devices that answer. Ctrl-C stops them all.

    Where there is no terminal, it is headless: it prints the result and ends by itself.
    """
    with needs("demo"):
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    from hubbub.collection.shuffle_route import TRUSTS

    if trust not in TRUSTS:
        raise InvalidValue("--trust", trust, f"one of {', '.join(TRUSTS)}")
    if trust == "oblivious":
        with needs("shuffle"):
            import gmpy2  # noqa: F401
    from hubbub.cli.demo_view import run_live, run_shuffled
    from hubbub.collection.time import seconds_of
    from hubbub.demo.live import Live
    from hubbub.demo.shuffled import ShuffledDemo

    if stream and trust != "shuffle":
        raise InvalidValue("--stream", f"with --trust {trust}", "with --trust shuffle")
    if trust != "local":
        usual, long = (200, "30s") if trust == "oblivious" else (1500 if stream else 600, "8s")
        sizes = {"devices": usual if devices is None else devices, "step_seconds": seconds_of("step", step or long)}
        shuffled = ShuffledDemo(**sizes, seed=seed, trust=trust, stream=stream, say=None if as_json else say)
        return run_shuffled(shuffled, as_json=as_json)
    quiet = headless or as_json or not (sys.stdin.isatty() and sys.stdout.isatty())
    live = Live(
        devices=8000 if devices is None else devices,
        step_seconds=seconds_of("step", step or "4s"),
        workers=workers,
        seed=seed,
        folder=folder,
        port=port,
        say=None if as_json else say,
    )
    return run_live(
        live,
        seconds=HEADLESS_SECONDS if quiet and seconds is None else seconds,
        quiet=quiet,
        until_alarm=quiet and seconds is None,
        browser=browser,
        as_json=as_json,
    )
