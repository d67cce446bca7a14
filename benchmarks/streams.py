"""Window streams: what a simulation costs beyond the randomness it cannot do without."""

from collections.abc import Iterator

from measure import Result, in_process

MIB = 1 << 20


def streams(quick: bool) -> Iterator[Result]:
    """LPA, a million devices, d=117, w=20."""
    n, steps = 1_000_000, 200 if quick else 1440
    few, many = (in_process("window_stream.py", n, count) for count in (steps // 4, steps))
    what = f"LPA stream, 1e6 devices, {steps} steps, d=117"
    yield Result(
        what=what,
        unit="s",
        ours=many["cpu"],
        versus="AES bytes of its reports",
        theirs=many["drawing"],
        ratio=many["cpu"] / many["drawing"],
        most=3.0,
    )
    yield Result(
        what=f"{what}: peak memory",
        unit="MiB",
        ours=many["peak"] / MIB,
        versus=f"{steps // 4} steps",
        theirs=few["peak"] / MIB,
        ratio=many["peak"] / few["peak"],
        most=1.1,
    )
