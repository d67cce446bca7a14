"""Logs as lines of JSON. They hold events, never the content of reports nor the addresses of senders."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Logged", "log", "log_error", "log_failed_request", "set_up"]

_logger = logging.getLogger("hubbub.service")
_PLACES = 4  # the innermost lines of a stack that are logged


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields."""
    _logger.log(level, event, extra={"fields": fields})


def log_error(event: str, error: BaseException, **fields: object) -> None:
    """Log an error by its kind and where it was raised: its message may hold values."""
    log(event, level=logging.ERROR, **fields, **_described(error))


def _described(error: BaseException) -> dict[str, Any]:
    lines = [(Path(frame.f_code.co_filename), line, frame) for frame, line in traceback.walk_tb(error.__traceback__)]
    places = [f"{path.parent.name}/{path.name}:{line} {frame.f_code.co_name}" for path, line, frame in lines]
    return {"error": type(error).__name__, "detail": "; ".join(places[: -_PLACES - 1 : -1])}


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _described(record.exc_info[1])
        return json.dumps(line, default=str)


def set_up(stream: TextIO | None = None, *, level: int = logging.INFO) -> None:
    """Send the logs of the service and of uvicorn to a stream; by default to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name, least in (("hubbub.service", level), ("uvicorn", max(level, logging.WARNING))):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(least)


def log_failed_request(scope: Scope, error: Exception) -> None:
    """Log an exception in a request, without values."""
    route = getattr(scope.get("endpoint"), "__qualname__", None)
    log_error("request failed", error, method=scope["method"], path=scope["path"], route=route)


class Logged:
    """An ASGI application that logs each answer: method, path, status, time. No address, query or body.

    An exception is logged with the path, the function that the route calls, and where it was raised.
    """

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
        except Exception as error:
            log_failed_request(scope, error)
            raise
        finally:
            took = round(1000 * (time.perf_counter() - began), 1)
            log("request", method=scope["method"], path=scope["path"], status=status, ms=took)
