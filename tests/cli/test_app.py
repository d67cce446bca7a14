"""What holds for every command, also of other packages: help, version, errors, exit codes, tables, a quick start."""

import json
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import hubbub as hb
from hubbub.cli.output import bar, check_plot, figure, rows, save_plot, shorten
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub_papers import REPRODUCTIONS, reproduce
from hubbub_papers.harness import PAPERS
from tests.cli.commands import NOTHING_HEAVY, Hubbub

COMMANDS = ["demo", "plan file", "plan shares", "plan shuffled", "audit", "estimate", "reproduce", "watch"]
COMMANDS += ["data list", "data get"]
SHARES = "plan shares --domain 16"


def test_version(hubbub: Hubbub) -> None:
    result = hubbub("--version")
    assert (result.exit_code, result.stdout) == (0, f"hubbub {hb.__version__}\n")


@pytest.mark.parametrize("command", ["", "data", "plan", "shuffler"])
def test_no_command_shows_help(hubbub: Hubbub, command: str) -> None:
    result = hubbub(*command.split())
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Usage" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_json(hubbub: Hubbub, command: str) -> None:
    result = hubbub(*command.split(), "--help")
    assert result.exit_code == 0
    assert "--json" in result.stdout


@pytest.mark.parametrize("command", ["plan", "itemsets", "release", "watch"])
def test_the_paragraphs_of_help_fill_the_width(hubbub: Hubbub, command: str) -> None:
    text = hubbub(command, "--help").stdout.partition("╭")[0]
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines() if line.strip()]
        assert all(len(line) > 50 for line in lines[:-1]), lines


def test_every_option_can_come_from_the_environment(hubbub: Hubbub) -> None:
    """By its name on the command line, which wins; nothing but options of commands is read."""
    variables = {"HUBBUB_PLAN_SHARES_N": "1000", "HUBBUB_PLAN_SHARES_EPSILON": "2", "HUBBUB_PLAN_SHARES_JSON": "1"}
    done = hubbub.process("plan", "shares", "--domain", 4, "--epsilon", 1, HUBBUB_VERSION="0", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert {(row["n"], row["epsilon"]) for row in json.loads(done.stdout)} == {(1000, 1.0)}
    several = {"HUBBUB_PLAN_TABLE_COLUMN": "age:9 state:4", "HUBBUB_PLAN_TABLE_QUERY": "age=3"}
    done = hubbub.process("plan", "table", "-n", 1000, "-e", 1, "--json", **several)
    assert json.loads(done.stdout)[0]["columns"] == ["age:9", "state:4"]
    done = hubbub.process("reproduce", "list", HUBBUB_REPRODUCE_JSON="1")
    assert json.loads(done.stdout), done.stderr
    done = hubbub.process("serve", "absent.toml", HUBBUB_SERVE_METRICS_PORT="70000")
    assert "'--metrics-port'" in done.stderr


@pytest.mark.parametrize(("words", "place"), [("hubbub plan sh", 2), ("hubbub shuffler serve --c", 3)])
def test_a_shell_completes_commands_and_options(hubbub: Hubbub, words: str, place: int) -> None:
    done = hubbub.process(_HUBBUB_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(place))
    assert done.stdout.split() == {2: ["shares", "shuffled"], 3: ["--config"]}[place]


@pytest.mark.parametrize("command", ["", "watch"])
def test_help_loads_nothing_heavy(hubbub: Hubbub, command: str) -> None:
    done = hubbub.process(*command.split(), "--help", before=NOTHING_HEAVY)
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert "demo" in done.stdout


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_base_install_says_what_is_missing(hubbub: Hubbub, package: str) -> None:
    done = hubbub.process("demo", before=f"import sys; sys.modules['{package}'] = None;")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"hubbub: the command line needs {package}: pip install 'hubbub-ldp[demo]'\n"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("dmeo", "No such command 'dmeo'. Did you mean 'demo'?"),
        ("--nope", "--nope"),
        ("plan shares", "--domain"),
        ("plan shares --domain many", "--domain"),
        (f"{SHARES} --n 100 --epsilon -1", "epsilon: got -1.0"),
        (f"{SHARES} --n 100", "n, epsilon, stderr"),
        (f"{SHARES} --n 9 --epsilon 1 --plot x.doc", "plot: got 'x.doc'"),
        (f"{SHARES} --n 9 --epsilon 1 --plot no/x.png", "plot: got 'no/x.png'"),
        ("demo --trust nobody", "--trust: got 'nobody'"),
        ("check", "file"),
        ("audit", "mechanism: "),
        ("audit ExSub", "dimension: got nothing"),
        ("audit --all --dimension 6", "a mechanism's name"),
        ("audit OLH --all", "mechanism: got 'OLH'"),
        ("audit OHL", "did you mean OLH?"),
        ("audit OLH --epsilon 0", "epsilon: got 0.0"),
        ("audit --spec absent.json", "absent.json: No such file or directory"),
        ("data get emojis", "did you mean emoji?"),
        ("reproduce wang-2021-analysing-table-3.2", "did you mean wang-2021-analyzing-table-3.2?"),
        ("reproduce --nope", "No such option: --nope"),
        ("reproduce nothing-like-*", "name: got 'nothing-like-*'"),
        ("estimate absent.csv --column c --epsilon 1", "absent.csv"),
    ],
)
def test_an_error_is_one_line(hubbub: Hubbub, command: str, message: str) -> None:
    assert message in hubbub.refused(*command.split())


def test_json_is_all_there_is_on_stdout(hubbub: Hubbub) -> None:
    command = f"{SHARES} --n 1000 --epsilon 1 --json"
    done = hubbub.process(*command.split(), FORCE_COLOR="1", COLUMNS="40")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["picked"] in (True, False)


def test_an_interrupt_is_quiet(hubbub: Hubbub) -> None:
    with hubbub.start("release", "-", "--epsilon", 1, "--bound", 10, "--holdout", 100, "--every", 16) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("3\n" * 200)
        running.stdin.flush()
        assert running.stdout.readline()  # the first steps are released; it waits for more
        running.send_signal(signal.SIGINT)
        _, message = running.communicate()
    assert (running.returncode, message) == (130, "")


def test_a_closed_pipe_is_quiet(hubbub: Hubbub) -> None:
    with hubbub.start("data", "list") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode != 0


def test_a_terminal_without_emoji(hubbub: Hubbub, tmp_path: Path) -> None:
    (tmp_path / "used.csv").write_text("emoji\n" + "\U0001f602\n\U0001f44d\n" * 100, encoding="utf-8")
    options = ("--column", "emoji", "--epsilon", 2, "--seed", 1)
    done = hubbub.process("estimate", "used.csv", *options, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "?" in done.stdout
    assert done.stdout.isascii()


MODULE = """
print("imported")

def greet(name: str = "nobody", fail: bool = False) -> None:
    '''Greet somebody.'''
    from hubbub.core.errors import InvalidValue

    if fail:
        raise InvalidValue("name", name, "somebody")
    print(f"hello {name}")
"""
ENTRY_POINTS = """
[hubbub.commands]
greet = greeting:greet
gone = greeting_that_is_gone:greet
wrong = greeting:no_such_function
plan = greeting:greet
"""


@pytest.fixture
def with_package(hubbub: Hubbub, tmp_path: Path):
    """Run `hubbub` where a package is installed that has four commands: two are broken, one has a name of ours."""
    metadata = tmp_path / "greeting-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "greeting.py").write_text(MODULE)
    path = [str(tmp_path), *filter(None, sys.path)]
    return lambda *args: hubbub.process(*args, before=f"import sys; sys.path[:] = {path!r}; ")


def test_they_are_listed_without_being_imported(with_package) -> None:
    done = with_package("--help")
    assert done.returncode == 0, done.stderr
    assert "imported" not in done.stdout
    listed = [line.split()[1] for line in done.stdout.splitlines() if "Of greeting." in line]
    assert listed == ["gone", "greet", "wrong"]  # `plan` is ours


def test_they_take_their_options_and_have_their_own_help(with_package) -> None:
    assert with_package("greet", "--name", "Ada").stdout == "imported\nhello Ada\n"
    assert "Greet somebody." in with_package("greet", "--help").stdout


def test_their_errors_are_one_line(with_package) -> None:
    for option, message in (("--fail", "hubbub: name: "), ("--unknown", "hubbub: No such option")):
        done = with_package("greet", option)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(message)


def test_a_broken_one_is_named_and_stops_no_other(with_package) -> None:
    for name, of in (("gone", "greeting_that_is_gone:greet: ModuleNotFoundError: "), ("wrong", "greeting:")):
        done = with_package(name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"hubbub: {name}, of {of}")
    assert with_package("plan", "--help").stdout.count("imported") == 0
    assert with_package("--version").returncode == 0


LABELS = ("rare", "$often^", "\U0001f602", "some")
FOUND = Estimate(value=np.array([0.01, 0.5, -0.02, 0.2]), variance=np.full(4, 1e-4), n=1000, labels=LABELS)
TRUTH = np.array([0.0, 0.5, 0.3, 0.2])


def test_rows_are_the_largest_first() -> None:
    shown = rows(FOUND, TRUTH, threshold=0.05)
    assert [row.value for row in shown] == ["$often^", "some", "rare", "\U0001f602"]
    assert [row.significant for row in shown] == [True, True, False, False]
    assert [row.truth for row in shown] == [0.5, 0.2, 0.0, 0.3]
    assert all(row.low < row.estimate < row.high for row in shown)
    assert rows(FOUND, TRUTH, 0.05, most=2) == shown[:2]


@pytest.mark.parametrize("threshold", [-1.0, 0.05, 1.0])
def test_a_figure_of_any_names(tmp_path: Path, threshold: float, capsys: pytest.CaptureFixture[str]) -> None:
    shown = rows(FOUND, TRUTH, threshold)
    drawn = figure(shown, [row.value for row in shown], threshold, "all")
    save_plot(drawn, tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().err == f"plot: {tmp_path / 'all.png'}\n"
    (ax,) = drawn.axes
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    lengths = {round(patch.get_y() + patch.get_height() / 2): patch.get_width() for patch in bars}
    assert [lengths[place] for place in (3, 2, 1, 0)] == pytest.approx([100 * row.estimate for row in shown])


def test_a_bar_is_as_long_as_its_value() -> None:
    lengths = [len(bar(value / 100, 1.0, 20)) for value in range(101)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (0, 20)
    assert bar(1.0, 0.0, 20) == ""
    for mark in (-0.5, 0.0, 0.5, 1.0, 7.0):
        assert bar(0.3, 1.0, 10, mark=mark).count("◆") == 1
        assert len(bar(0.3, 1.0, 10, mark=mark)) <= 10


def test_names_are_made_printable() -> None:
    assert shorten("a\nb\x1b[31m", 20) == "a b [31m"
    assert len(shorten("x" * 50, 20)) == 20


def test_where_a_plot_cannot_be_saved(tmp_path: Path) -> None:
    check_plot(None)
    check_plot(tmp_path / "a.SVG")
    for wrong in (tmp_path / "a", tmp_path / "a.doc", tmp_path / "absent" / "a.png"):
        with pytest.raises(InvalidValue, match="plot: got"):
            check_plot(wrong)


KEYS = {"row", "column", "paper", "ours", "note"}
NAME = "wang-2021-analyzing-table-3.2"


def test_list(hubbub: Hubbub) -> None:
    listed = hubbub.answer("reproduce", "list")
    assert [entry["name"] for entry in listed] == list(REPRODUCTIONS)
    assert set(listed[0]) == {"name", "title", "repeats", "needs", "paper", "seconds", "measured"}
    assert {entry["paper"] for entry in listed} == {*(paper.key for paper in PAPERS), None}
    assert NAME in hubbub("reproduce", "list").stdout


def test_json_and_the_table(hubbub: Hubbub) -> None:
    rows = hubbub.answer("reproduce", NAME, "--out", "here")
    assert rows == reproduce(NAME).to_dicts()
    assert set(rows[0]) == KEYS
    assert (hubbub.folder / "here" / f"{NAME}.csv").exists()
    result = hubbub("reproduce", NAME)
    assert result.exit_code == 0
    assert "paper" in result.stdout
    assert "ours" in result.stdout
    saved = Path("build", "reproduce", f"{NAME}.csv")
    assert str(saved) in result.stderr
    assert saved.exists()


def test_a_pattern(hubbub: Hubbub) -> None:
    names = [name for name in REPRODUCTIONS if name.startswith("wang-2021-analyzing-table-3.")]
    assert len(names) > 1
    rows = hubbub.answer("reproduce", "wang-2021-analyzing-table-3.*")
    assert {row["row"].partition(": ")[0] for row in rows} == set(names)
    assert all(set(row) == KEYS for row in rows)
