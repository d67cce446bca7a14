"""A table that is asked over HTTP: the same answers, the same errors, nothing else taken for an answer."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.query.connect import CollectorAway, RemoteTable
from hubbub.query.engine import QueryEngine
from hubbub.query.errors import QueryError
from tests.query.tables import table_of

PATH = "/v1/collections/a%20shop/questions/visits/sql"


def engine() -> QueryEngine:
    systems = {"os": ["ios", "web", None] * 100}
    return QueryEngine(table_of({"age": hb.Ordinal(9)}, [np.arange(300) % 9], systems, epsilon=3.0))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server that answers queries; some names of questions make it misbehave."""
    table = engine()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.headers["Authorization"] != "Bearer secret":
                return self.reply(401, {"title": "no token"})
            if "/broken/" in self.path:
                return self.reply(200, {"rows": 3})
            if "/busy/" in self.path:
                return self.reply(503, None)
            if self.path != PATH:
                return self.reply(404, {"title": "no such question"})
            try:
                answer = table.sql(request["sql"], level=request["level"], explain=request["explain"])
                return self.reply(200, answer.to_json())
            except QueryError as error:
                problem = {name: getattr(error, name) for name in ("problem", "instead", "line", "column")}
                return self.reply(422, {"title": "a query that is not answered", **problem})

        def reply(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_answers_and_errors_are_those_of_the_table(address: str) -> None:
    remote = hb.connect(address, token="secret", collection="a shop", question="visits")
    query = "SELECT os, COUNT(*) AS n FROM people WHERE age < 4 GROUP BY os"
    there, here = remote.sql(query, level=0.9), engine().sql(query, level=0.9)
    assert there.to_json() == here.to_json()
    assert there.to_arrow().equals(here.to_arrow())
    assert "HIO" in remote.sql(f"EXPLAIN {query}").plan
    assert remote.sql(query, explain=True).plan
    with pytest.raises(QueryError) as error:
        remote.sql("SELECT COUNT(*)\nFROM people WHERE agee < 4")
    assert str(error.value) == "line 2, column 19: unknown column agee; did you mean age?"


def test_what_is_no_answer_is_refused(address: str) -> None:
    query = "SELECT COUNT(*) FROM people"
    with pytest.raises(InvalidValue, match="token"):
        RemoteTable(address + PATH.removesuffix("/sql"), token="wrong").sql(query)
    refusals = {
        "broken": (DecodeError, "."),
        "busy": (CollectorAway, "503"),
        "shop": (InvalidValue, "no such question"),
    }
    for collection, (error, message) in refusals.items():
        with pytest.raises(error, match=message):
            RemoteTable(address, token="secret", collection=collection, question="visits").sql(query)
    with pytest.raises(CollectorAway, match="does not answer"):
        RemoteTable("http://127.0.0.1:9", token=None, collection="shop", question="visits").sql(query)


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a/v1/collections/b", "http://a/v1/collections/b/c/d"])
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="url"):
        RemoteTable(url, token=None)
    with pytest.raises(InvalidValue, match="token"):
        RemoteTable("http://a", token="a\nb", collection="c", question="d")
