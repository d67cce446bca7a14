"""A table that a collector has, asked over HTTP."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from hubbub.core.bounded_http import AnswerTooLong, HttpPeer
from hubbub.core.errors import HubbubError, InvalidValue
from hubbub.query.answer import QueryAnswer
from hubbub.query.answer_json import answer_from_json
from hubbub.query.errors import QueryError

LARGEST = 64 << 20
"""An answer of more bytes is not read."""


class CollectorAway(HubbubError, ConnectionError):
    """A collector that does not answer now."""


class RemoteTable:
    """A collector's table: queries are sent, answers with their intervals come back.

    Parameters
    ----------
    url
        The collector's address, perhaps with the path of a question.
    token
        What results are read with.
    collection, question
        Which table, where the address does not say.
    timeout
        Seconds for a whole query, to the last byte of its answer.

    Example:
        >>> RemoteTable("https://example.org/v1/collections/shop/questions/visits", token="secret").path
        '/v1/collections/shop/questions/visits/sql'
        >>> RemoteTable("https://example.org", token=None)
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: question: got (None, None); allowed: the names of a collection and ...
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None,
        collection: str | None = None,
        question: str | None = None,
        timeout: float = 120.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidValue("url", url, "the address of a collector: http:// or https://")
        root, marker, rest = parts.path.partition("/v1/collections/")
        if marker:
            names = [unquote(name) for name in rest.strip("/").split("/")]
            if len(names) not in (3, 4) or names[1] != "questions" or names[3:] not in ([], ["sql"]):
                raise InvalidValue("url", url, "an address that ends in /v1/collections/NAME/questions/NAME")
            collection, question = collection or names[0], question or names[2]
        if not collection or not question:
            raise InvalidValue(
                "question", (collection, question), "the names of a collection and of its table question"
            )
        if token is not None and (not token.isascii() or not token.isprintable()):
            raise InvalidValue("token", "one with other signs", "printable ASCII")
        base = (root if marker else parts.path).rstrip("/")
        collection_name, question_name = (quote(name, safe="") for name in (collection, question))
        self.path = f"{base}/v1/collections/{collection_name}/questions/{question_name}/sql"
        self._peer, self._token = HttpPeer(parts, seconds=timeout, most_bytes=LARGEST), token

    def sql(self, text: str, *, level: float = 0.95, explain: bool = False) -> QueryAnswer:
        """The answer of a query; what the collector refuses is the same error as of a table here."""
        body = json.dumps({"sql": text, "level": level, "explain": explain}).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        status, answer = self._post(body, headers)
        if status == 200:
            return answer_from_json(answer)
        raise _refusal(status, answer)

    def _post(self, body: bytes, headers: dict[str, str]) -> tuple[int, Any]:
        try:
            response = self._peer.request("POST", self.path, headers, body)
        except AnswerTooLong:
            raise InvalidValue("answer", "a longer one", f"at most {LARGEST:,} bytes: ask LIMIT") from None
        except (OSError, HTTPException, ValueError) as error:
            raise CollectorAway(f"the collector does not answer: {error or type(error).__name__}") from None
        try:
            return response.status, json.loads(response.body)
        except ValueError:
            return response.status, None


def _refusal(status: int, answer: Any) -> Exception:
    """What the collector says of a query that it does not answer."""
    if status in (401, 403):
        return InvalidValue("token", "one that is not taken", "the collector's")
    document = answer if isinstance(answer, dict) else {}
    problem = document.get("problem") or document.get("detail") or document.get("title")
    if isinstance(problem, str) and status in (400, 422):
        line, column = (
            document.get(name) if isinstance(document.get(name), int) else None for name in ("line", "column")
        )
        return QueryError(problem, str(document.get("instead") or ""), line=line, column=column)
    if status == 429 or status >= 500:
        return CollectorAway(f"the collector answers {status}")
    return InvalidValue("url", status, f"a collector's table: {problem or 'it answers otherwise'}")
