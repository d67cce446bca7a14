"""The device's side of a collection: light, durable, and never more generous than its ledger."""

from hubbub.client.client import Client, NotReady
from hubbub.client.status import ClientStatus, read_status
from hubbub.client.upload import HttpTransport, Transport, Unreachable
from hubbub.core.bounded_http import Response

__all__ = ["Client", "ClientStatus", "HttpTransport", "NotReady", "Response", "Transport", "Unreachable", "read_status"]
