"""`hubbub demo --once`: one collection from end to end, without a server, by each mechanism."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hubbub.demo.crowd import Crowd
    from hubbub.random.source import Random


def demo_once(n: int | None, epsilon: float, seed: int, out: Path, as_json: bool) -> None:
    """Which emoji does a crowd use? Ask everyone, privately, and compare with the truth."""
    from hubbub.cli import demo_view as view
    from hubbub.cli import output
    from hubbub.cli.output import emit, page, progress
    from hubbub.demo.crowd import compare
    from hubbub.demo.crowd import demo as collect
    from hubbub.mechanisms.frequency.adaptive import adaptive
    from hubbub.privacy.audit import audit
    from hubbub.random.source import Random

    adaptive(epsilon=epsilon, domain=2)  # what no mechanism takes is refused before anything is fetched or made
    out.mkdir(parents=True, exist_ok=True)
    rng = Random(seed=seed)
    crowd = _crowd(n, rng)
    with progress("everyone reports") as follow:
        run = collect(crowd, epsilon=epsilon, rng=rng, progress=follow)
    privacy = audit(run.mechanism)
    shown = output.rows(run.estimate, crowd.truth, run.threshold, most=15)
    name = dict(zip(crowd.labels, crowd.names, strict=True))
    title = f"{crowd.n:,} reports through {type(run.mechanism).__name__}, epsilon {epsilon:g}"
    output.figure(shown, [name[row.value] for row in shown], run.threshold, title).savefig(out / "demo.png", dpi=150)
    (out / "statement.txt").write_text(privacy.statement() + "\n", encoding="utf-8")

    console = page()
    if not as_json:
        console.print(view.people(run), view.devices(run), view.server(run), view.top(run, shown))
    with progress("everyone again") as follow:
        others = compare(run, rng, progress=follow)
    answer: dict[str, Any] = {
        "source": crowd.source,
        "n": crowd.n,
        "domain": len(crowd.labels),
        "mechanism": type(run.mechanism).__name__,
        "epsilon": run.mechanism.epsilon,
        "effective_epsilon": run.mechanism.effective_epsilon,
        "report_bytes": run.mechanism.report_bytes,
        "shards": len(run.shards),
        "identical": run.identical,
        "sketch_sha256": run.digests,
        "threshold": run.threshold,
        "clients": [{**asdict(client), "sent": client.sent.hex()} for client in run.clients],
        "covered": run.covered,
        "top": [{**row._asdict(), "name": name[row.value]} for row in shown],
        "others": [asdict(other) for other in others],
        "error": {"raw": crowd.error(run.estimate), "consistent": crowd.error(run.consistent)},
        "private": privacy.to_dict(),
        "statement": privacy.statement(),
        "files": [str(out / file) for file in ("demo.png", "demo.json", "statement.txt")],
    }
    (out / "demo.json").write_text(json.dumps(answer, indent=2) + "\n", encoding="utf-8")
    if as_json:
        return emit(answer)
    console.print(view.others(run, others), view.privacy(privacy), "", view.next_steps(answer["files"]))
    return None


def _crowd(n: int | None, rng: Random) -> Crowd:
    from hubbub.cli.output import say
    from hubbub.data import DataError
    from hubbub.demo.crowd import emoji_crowd, zipf_crowd

    try:
        return emoji_crowd(n, rng.child("people"), say)
    except DataError as error:
        reason = str(error).splitlines()[0].rstrip(":")
        say(f"The emoji could not be fetched ({reason}), so these people are invented.")
        return zipf_crowd(n, rng.child("people"))
