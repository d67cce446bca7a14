"""A collector and some shufflers as processes of their own, each of which can be killed and begun again."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hubbub.authoring import load_collection
from hubbub.client.upload import HttpTransport
from hubbub.service.http.key_folder import KeyFolder
from hubbub.shuffler.config import ShufflerKeys

SHUFFLER = """
[[shuffle.shufflers]]
url = "{url}"
encryption_key = "{encryption_key}"
signing_key = "{signing_key}"
"""


class ShuffledProcesses:
    """The programs of a collection, whose file is `text` with a place for the collector's key.

    If its trust is "oblivious", a homomorphic key is made too.
    """

    def __init__(self, folder: Path, text: str, *, shufflers: int = 2) -> None:
        self.folder = folder
        self.running: dict[str, Any] = {}
        keys = [ShufflerKeys.generate() for _ in range(shufflers)]
        opened = [socket.socket() for _ in keys]
        for each in opened:
            each.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in opened]
        for each in opened:
            each.close()
        self.urls = [f"http://127.0.0.1:{port}" for port in ports]
        self.secrets = KeyFolder(folder / "keys")
        text = text.replace("COLLECTOR", self.secrets.onion_key().public.hex())
        if 'trust = "oblivious"' in text:
            public = self.secrets.homomorphic_key().public
            numbers = "".join(f'{name} = "{getattr(public, name):x}"\n' for name in ("modulus", "g", "h"))
            text += f"[shuffle.homomorphic_key]\n{numbers}subgroup_bits = {public.subgroup_bits}\n"
        text += "".join(SHUFFLER.format(url=url, **key.public()) for url, key in zip(self.urls, keys, strict=True))
        (folder / "collection.toml").write_text(text)
        self.collection = load_collection(folder / "collection.toml")
        self._port = "0"
        told = self.begin_collector()
        self.server, self.public_key = str(told["at"]), str(told["public_key"])
        self._port = self.server.rpartition(":")[2]
        for number, (key, port) in enumerate(zip(keys, ports, strict=True)):
            key.save(folder / f"{number}.key")
            (folder / f"{number}.toml").write_text(
                f'collection = "{self.collection.name}"\ncollector = "{self.server}"\n'
                f'public_key = "{self.public_key}"\nkey = "{number}.key"\nstore = "{number}.db"\nport = {port}\n'
            )
            self.begin(number)

    def _options(self) -> list[str]:
        return ["--keys", str(self.secrets.path), "--store", f"sqlite:///{self.folder}/store.db"]

    def begin_collector(self) -> dict[str, Any]:
        """Start the collector, or start it again where it was."""
        return self.start(
            "collector", ["serve", str(self.folder / "collection.toml"), "--port", self._port, *self._options()]
        )

    def begin(self, number: int) -> None:
        """Start a shuffler, or start it again."""
        self.start(str(number), ["shuffler", "serve", "--config", str(self.folder / f"{number}.toml")])

    def start(self, name: str, command: list[str]) -> dict[str, Any]:
        """Start a program, and wait until it says that it is ready; what it says."""
        log = self.folder / f"{name}-{time.monotonic_ns()}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "hubbub.cli.until_input_ends", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.running[name] = process
        while True:
            for line in log.read_text().splitlines():
                if '"serving"' in line or '"shuffling"' in line:
                    told: dict[str, Any] = json.loads(line)
                    return told
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)

    def kill(self, name: str) -> None:
        """End a program without a warning."""
        os.kill(self.running[name].pid, signal.SIGKILL)
        self._gone(name)

    def stop(self) -> None:
        """End all of them."""
        for name in list(self.running):
            self.running[name].stdin.close()
            self._gone(name)

    def _gone(self, name: str) -> None:
        process = self.running.pop(name)
        process.wait(timeout=60)
        process.stdin.close()

    def get(self, path: str, at: str | None = None) -> Any:
        """What a program tells."""
        headers = {"Authorization": f"Bearer {self.secrets.token()}"}
        response = HttpTransport(at or self.server).request("GET", path, headers)
        assert response.status == 200, response
        return json.loads(response.body)
