"""Logs as lines of JSON. They hold events, never the content of reports nor the addresses of senders."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Logged", "log", "set_up"]

_logger = logging.getLogger("hubbub.service")


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields.

    Example:
        >>> log("started", collections=["themes"])
    """
    _logger.log(level, event, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """A record as one line of JSON.

    Example:
        >>> record = logging.LogRecord("hubbub", logging.INFO, "", 0, "started", (), None)
        >>> json.loads(JsonLines().format(record))["event"]
        'started'
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, default=str)


def set_up(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send the logs of the service and of uvicorn to a stream; by default to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, least in (("hubbub.service", level), ("uvicorn", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(least)


class Logged:
    """An ASGI application that logs each answer: method, path, status, time. No address, query or body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and log its status and duration."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        status, began = 0, time.perf_counter()

        async def send_and_note(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            return await self._app(scope, receive, send_and_note)
        finally:
            took = round(1000 * (time.perf_counter() - began), 1)
            log("request", method=scope["method"], path=scope["path"], status=status, ms=took)
