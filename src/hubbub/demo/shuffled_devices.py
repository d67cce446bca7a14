"""Devices of a demonstration whose reports are shuffled: each seals its own, and sends it to the first shuffler."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from hubbub.client.documents import PublishedAsk
from hubbub.client.transport import HttpTransport, Transport, Unreachable
from hubbub.client.upload import sealer_for
from hubbub.core.reports import Reports
from hubbub.demo.devices import Devices
from hubbub.demo.people import People
from hubbub.demo.programs import until_input_ends
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload

AT_ONCE = 16
"""How many uploads are under way at a time: a shuffler answers once they are on disk, which is as fast for many."""


class ShuffledDevices(Devices):
    """Devices that seal every report in layers, and send it to the first shuffler as an upload of its own."""

    def __init__(self, transport: Transport, public_key: bytes, name: str, people: People) -> None:
        super().__init__(transport, public_key, name, people)
        route = self.collection.shuffle
        assert route is not None
        self._sealer, self._first = sealer_for(self.collection), HttpTransport(route.shufflers[0].url)

    def send(self) -> None:
        """Send the reports that wait. Those that are not acknowledged stay, and are sent again unchanged."""
        uploads, self._waiting = self._waiting, []
        with ThreadPoolExecutor(AT_ONCE) as threads:
            accepted = list(threads.map(self._post, uploads))
        self._waiting += [upload for upload, done in zip(uploads, accepted, strict=True) if not done]

    def _post(self, upload: bytes) -> bool:
        try:
            response = self._first.request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, upload)
        except Unreachable:
            return False
        return response.status < 500

    def _wait(self, published: PublishedAsk, reports: Reports) -> None:
        collection = self.collection
        for at in range(len(reports)):
            report_id = self._rng.bytes(16)
            sealed = self._sealer.seal(published.name, published.ask, reports[at : at + 1].to_bare())
            entry = Entry(*published.name, report_id, sealed)
            self._waiting.append(encode_upload(collection.name, collection.version, [entry], collection.frame_bytes))


def main() -> int:
    """Read one line of settings, and answer until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    stop = until_input_ends()
    transport = HttpTransport(settings["address"])
    key = bytes.fromhex(settings["public_key"])
    ShuffledDevices(transport, key, settings["name"], People(**settings["people"])).run(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
