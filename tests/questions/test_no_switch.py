"""Nothing outside `hubbub.questions` knows a kind of question, and nothing above domains asks which domain one is."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import hubbub
from hubbub.core.domain import DOMAINS
from hubbub.questions import QUESTIONS

SOURCE = Path(hubbub.__file__).parent
KINDS = set(QUESTIONS) - {"share", "quantity"}  # which are what an `Estimate` is of: a kind may have that name too
CLASSES = {QUESTIONS[kind].__name__ for kind in QUESTIONS}
DOMAIN_CLASSES = {domain.__name__ for domain in DOMAINS.values() if domain.__module__.startswith("hubbub.core")}
NO_DOMAINS = ("authoring", "cli", "client", "collection", "dashboard", "service")
"""The packages that ask a domain, and do not ask which one it is."""


def switches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a kind is compared, looked up, matched, imported or asked for by its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(map(_reads_kind, (node.left, *node.comparators))):
            named = [name for side in (node.left, *node.comparators) for name in _names(side)]
            yield from ((node.lineno, f"compares a kind with {name}") for name in named if name in KINDS)
        elif isinstance(node, ast.Subscript) and _reads_kind(node.slice) and isinstance(node.value, ast.Dict):
            yield node.lineno, "looks a kind up"
        elif isinstance(node, ast.Match) and _reads_kind(node.subject):
            yield node.lineno, "matches a kind"
        elif isinstance(node, ast.Call) and _called(node) in ("isinstance", "issubclass"):
            named = [name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)]
            yield from ((node.lineno, f"asks for a {name}") for name in named if name in CLASSES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hubbub.questions."):
            names = [alias.name for alias in node.names]
            of_a_kind = (node.module or "").rpartition(".")[2] in KINDS
            yield from ((node.lineno, f"imports {name}") for name in names if of_a_kind or name in CLASSES)


def domain_ladders(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where a domain's class is asked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) == "isinstance":
            named = [name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)]
            yield from ((node.lineno, f"asks for a {name}") for name in named if name in DOMAIN_CLASSES)


def _reads_kind(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "kind"
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "kind"
    return isinstance(node, ast.Name) and node.id == "kind"


def _names(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def files(*packages: str) -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        package = path.relative_to(SOURCE).parts[0]
        if package != "questions" and (not packages or package in packages):
            yield path


def found(path: Path, search: Callable[[ast.AST], Iterator[tuple[int, str]]]) -> list[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [f"{path.relative_to(SOURCE)}:{line} {what}" for line, what in search(tree)]


def test_no_file_outside_questions_switches_on_a_kind() -> None:
    assert [switch for path in files() for switch in found(path, switches)] == []


def test_no_file_that_uses_fields_asks_which_domain_they_have() -> None:
    assert [ladder for path in files(*NO_DOMAINS) for ladder in found(path, domain_ladders)] == []


@pytest.mark.parametrize(
    "planted",
    [
        'if question.kind == "stream": pass',
        'moves = question.kind in ("stream", "mean")',
        'if spec["kind"] != "memo": pass',
        '{"memo": 1, "stream": 2}[question.kind]',
        'match question.kind:\n    case "memo":\n        pass',
        "isinstance(question, MemoQuestion)",
        "from hubbub.questions.stream import StreamQuestion",
        "from hubbub.questions.keyvalue import KeyValueQuestion",
    ],
)
def test_a_switch_would_be_seen(planted: str) -> None:
    assert list(switches(ast.parse(planted)))


def test_a_ladder_would_be_seen() -> None:
    assert list(domain_ladders(ast.parse("if isinstance(domain, Numeric | Sets): pass")))
