"""The table of mutations fits the source and the tests; `make test-mutations` tries every mutation."""

from tests.mutations import ROOT, mutations, node_ids, places, sources

TABLE = mutations()


def test_each_decision_is_found_once_in_the_source() -> None:
    texts = sources(ROOT)
    assert {row.name: len(places(row.source, texts)) for row in TABLE} == {row.name: 1 for row in TABLE}
    assert all(row.source != row.replacement for row in TABLE)


def test_each_mutation_has_tests_and_each_name_is_one_test() -> None:
    nodes = node_ids({test for row in TABLE for test in row.tests})
    assert {test: where for test, where in nodes.items() if len(where) != 1} == {}
    assert [row.name for row in TABLE if not row.tests] == []


def test_every_part_has_mutations() -> None:
    programs = {
        "collector",
        "client",
        "browser",
        "shuffler",
        "dashboard",
        "sql",
        "webhooks",
        "metrics",
        "curator",
        "fold",
        "spark",
    }
    shared = {"documents", "terms", "safety", "versions", "ledger"}
    assert {row.name.partition(":")[0] for row in TABLE} == programs | shared
