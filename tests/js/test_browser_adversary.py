"""A server that signs and asks whatever it likes hears no more than the smallest promise that was ever made."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from hubbub.authoring.toml import EXAMPLE, load_collection
from hubbub.collection import Keys
from tests.js.tab import OpenSite, RunNode, blank
from tests.shared.recount import judge
from tests.shared.signed_history import Adversary

HERE = Path(__file__).parent
PLANTED = {
    "a version forgets what was promised": (22, "client.ts", "addPromises(book.promises,", "addPromises([],"),
    "any mechanism is answered": (42, "admits.ts", "if (!family && !(terms", "if (false && !(terms"),
    "a name is answered again": (8, "answer.ts", "if (await access.get(entryKey(ask))) return;", ""),
    "memos are free": (1, "memo.ts", "Memos, input)) ? 0n : spent)", "Memos, input)) ? 0n : 0n)"),
    "the wall clock is believed": (4, "promises.ts", " || at.trusted > now.trusted - (steps - 1) * interval", ""),
    "streams of changes are free": (3, "changes.ts", "state.paid ? 0n : spent", "0n"),
    "studies are free": (1, "answer.ts", "pay(context, terms.limit, until)", "pay(context, 0n, until)"),
    "a study counts as of its first answer": (6, "answer.ts", "terms.rounds)[1] - 1", "terms.rounds)[1] * 0"),
    "the rounds of a study are not added up": (3, "answer.ts", "check(left >= 0n", "check(true"),
    "a version may postpone the end of a run": (213, "answer.ts", "check(until <= study.until", "check(true"),
    "any round will do": (6, "answer.ts", "check(ask.opens <= wall && wall < ask.closes", "check(true"),
    "parts may overlap": (42, "client.ts", "if (reason) throw", "if (!reason) null; else if (!parts) throw"),
}
"""By what is wrong: a history that shows it, the file, and what is changed in it."""
ANY_VERSION = ("client.ts", "if (weaker) throw new Refused(weaker, AGREED);", "")
"""A device that adopts versions that promise less: then its ledger alone keeps the promises."""


def changed(tools: Path, node: list[str], folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A bundle of the client with changes of its sources: the file, what is changed in it, and to what."""
    shutil.copytree(tools / "src", folder / "src")
    for file, right, wrong in changes:
        source = folder / "src" / file
        text = source.read_text(encoding="utf-8")
        assert text.count(right) == 1
        source.write_text(text.replace(right, wrong), encoding="utf-8")
    bundle = folder / "changed.mjs"
    esbuild = [*node, str(tools / "node_modules" / "esbuild" / "bin" / "esbuild")]
    options = ["--bundle", "--format=esm", "--target=es2022", "--log-level=error", f"--outfile={bundle}"]
    subprocess.run([*esbuild, str(folder / "src" / "internals.ts"), *options], check=True)
    return bundle


def play(run_node: RunNode, bundle: Path, seeds: Iterable[int]) -> tuple[dict[int, list[str]], Counter[str], int]:
    """What is wrong in the histories of these seeds, what was refused in them, and how much was answered."""
    keys = Keys.new()
    adversaries = {seed: Adversary(seed, keys) for seed in seeds}
    given = "".join(f"{json.dumps(adversary.history())}\n" for adversary in adversaries.values())
    printed = run_node("browser_adversary.mjs", bundle=bundle, given=given)
    wrong, refused, answered = {}, Counter[str](), 0
    for (seed, adversary), line in zip(adversaries.items(), printed.splitlines(), strict=True):
        told: dict[str, Any] = json.loads(line)
        refused.update(why.partition(":")[0] for why in told["errors"])
        answered += len(told["answers"])
        faults = judge(adversary, told)
        if faults:
            wrong[seed] = faults
    return wrong, refused, answered


@pytest.mark.parametrize("any_version", [False, True], ids=["as it is", "adopts any version"])
@pytest.mark.parametrize("histories", [50, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_promise_is_broken(
    built: Path, tools: Path, node: list[str], run_node: RunNode, tmp_path: Path, histories: int, any_version: bool
) -> None:
    bundle = changed(tools, node, tmp_path, ANY_VERSION) if any_version else built / "internals.mjs"
    answered, refused = 0, Counter[str]()
    for first in range(0, histories, 50):
        wrong, why, count = play(run_node, bundle, range(first, first + 50))
        assert not wrong
        answered += count
        refused.update(why)
    # Something was answered, and everything was tried: else nothing would be shown.
    assert answered > 3 * histories
    wanted = "arc budget limit mechanism part parts question round run step version view"
    assert set(refused) >= set(wanted.split())


def test_no_time_is_made_up_in_several_pages(run_node: RunNode) -> None:
    run_node("pages.test.mjs", "--test")


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(tools: Path, node: list[str], run_node: RunNode, tmp_path: Path, bug: str) -> None:
    seed, file, right, wrong = PLANTED[bug]
    bundle = changed(tools, node, tmp_path, (file, right, wrong), ANY_VERSION)
    # Where that history has changed, another will do.
    tried = [range(seed, seed + 3), *(range(first, first + 25) for first in range(0, 300, 25))]
    assert any(play(run_node, bundle, seeds)[0] for seeds in tried)


@pytest.mark.parametrize("histories", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_no_promise_is_broken_in_a_browser(context: BrowserContext, site: OpenSite, histories: int) -> None:
    home = site(load_collection(EXAMPLE))
    home.folders = (*home.folders, HERE)
    page = blank(context, home)
    keys, answered = Keys.new(), 0
    for seed in range(histories):
        adversary = Adversary(seed, keys)
        history = adversary.history()
        # Every answer is sent at once, so that what was heard is all there is.
        history["events"] = [["losing", False] if event[0] == "losing" else event for event in history["events"]]
        told = page.evaluate(
            """async ([history, database]) => {
              const { play } = await import("/browser_adversary.mjs");
              return play(history, (options) => hubbub.connect({ ...options, database }));
            }""",
            [history, f"device {seed}"],
        )
        assert not judge(adversary, told)
        answered += len(told["answers"])
    assert answered > 2 * histories
