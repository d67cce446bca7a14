"""The state file of a ToPS stream."""

from __future__ import annotations

import json
import os

from hubbub.core.migrations import Format, Run, UnknownFormat
from hubbub.core.random import Random
from hubbub.curator.saved_state import fields_from_bytes, fields_to_bytes, state_from_bytes, state_to_bytes
from hubbub.curator.stream import ToPSStream
from hubbub.curator.stream_file import StreamFile
from hubbub.curator.tops import ToPS


def _from_1(run: Run) -> None:
    """Format 1 stored the key of all future noise, also in every copy. The key is dropped: a new tree begins."""
    run("ALTER TABLE release ADD COLUMN every INTEGER")
    run("CREATE TABLE unsettled (until INTEGER PRIMARY KEY, key BLOB NOT NULL)")
    ((terms,),) = run("SELECT terms FROM terms")
    settings = json.loads(terms)
    for state, answered in run("SELECT state, answered FROM release"):
        fields = fields_from_bytes(state)
        if answered > fields["position"]:
            allowed = "a settled release: this one was interrupted, and the hubbub that began it has to finish it"
            raise UnknownFormat("release_format", "format 1", allowed)
        block = settings["fan_out"] ** settings["pruned"]
        inside = fields.pop("place") % block
        del fields["key"], fields["tree_key"]
        run("UPDATE release SET state = ?", fields_to_bytes({**fields, "inside": inside}))


FORMAT = Format("release_format", 2, {1: _from_1})
"""The version of a release's file."""


class ReleaseFile(StreamFile[ToPSStream]):
    """A ToPS stream and its state on disk; see `StreamFile`.

    Every time the file is opened, the stream goes on with a new tree, which begins with the block that was open.

    Parameters
    ----------
    path
        The file; a new one can be read by its owner only. It holds sums of true values.
    tops
        The settings; a file that was begun with others is refused.
    source
        What is released, such as a column's name; a file that was begun for another is refused.
    every, rng
        As for `StreamFile`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tops: ToPS,
        *,
        source: str = "",
        every: int | None = None,
        rng: Random | None = None,
    ) -> None:
        self._tops = tops
        super().__init__(path, {**tops.spec(), "source": source}, FORMAT, every=every, rng=rng)

    def _begin(self, rng: Random, state: bytes | None) -> ToPSStream:
        return ToPSStream(self._tops, rng, state=None if state is None else state_from_bytes(self._tops, state))

    def _state_of(self, stream: ToPSStream) -> bytes:
        return state_to_bytes(stream.state)
