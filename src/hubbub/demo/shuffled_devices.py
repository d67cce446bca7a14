"""Devices of a demonstration whose reports are shuffled: each seals its own, and sends it to shufflers."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

from hubbub.client.documents import PublishedAsk
from hubbub.client.upload import HttpTransport, Transport, Unreachable, sealer_for
from hubbub.core.reports import Reports
from hubbub.demo.devices import Devices
from hubbub.demo.people import Owners, People
from hubbub.demo.programs import until_input_ends
from hubbub.random.source import Random
from hubbub.wire.upload import UPLOAD_TYPE, Entry, encode_upload

AT_ONCE = 16
"""How many uploads are under way at a time: a shuffler answers once they are on disk, which is as fast for many."""


class ShuffledDevices(Devices):
    """Devices that seal every report in layers or in shares, and send it to shufflers as an upload of its own."""

    def __init__(self, transport: Transport, public_key: bytes, name: str, people: People | Owners) -> None:
        super().__init__(transport, public_key, name, people)
        route = self.collection.shuffle
        assert route is not None
        self._sealer = sealer_for(self.collection, Random())
        self._receivers = [HttpTransport(shuffler.url) for shuffler in route.receivers]
        self._uploads: list[tuple[HttpTransport, bytes]] = []

    def send(self) -> None:
        """Send the reports that wait. Those that are not acknowledged stay, and are sent again unchanged."""
        uploads, self._uploads = self._uploads, []
        with ThreadPoolExecutor(AT_ONCE) as threads:
            accepted = list(threads.map(self._post, uploads))
        self._uploads += [upload for upload, done in zip(uploads, accepted, strict=True) if not done]

    def _post(self, upload: tuple[HttpTransport, bytes]) -> bool:
        receiver, body = upload
        try:
            response = receiver.request("POST", "/v1/reports", {"Content-Type": UPLOAD_TYPE}, body)
        except Unreachable:
            return False
        return response.status < 500

    def _wait(self, published: PublishedAsk, reports: Reports) -> None:
        collection = self.collection
        for at in range(len(reports)):
            report_id = self._rng.bytes(16)
            sealed = self._sealer.seal(published.name, published.ask, reports[at : at + 1].to_bare())
            size = len(sealed) // len(self._receivers)
            for place, receiver in enumerate(self._receivers):
                entry = Entry(*published.name, report_id, sealed[place * size : (place + 1) * size])
                upload = encode_upload(collection.name, collection.version, [entry], collection.frame_bytes)
                self._uploads.append((receiver, upload))


def main() -> int:
    """Read one line of settings, and answer until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    stop = until_input_ends()
    transport, spec = HttpTransport(settings["address"]), settings["people"]
    key = bytes.fromhex(settings["public_key"])
    people = Owners(**spec) if "histories" in spec else People(**spec)
    ShuffledDevices(transport, key, settings["name"], people).run(stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
