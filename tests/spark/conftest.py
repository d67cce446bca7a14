"""Sinks in PostgreSQL use the server of the collector's tests."""

from tests.service.conftest import postgres as postgres
