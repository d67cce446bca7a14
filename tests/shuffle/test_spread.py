"""Work on ciphertexts in several processes: the same as in one, and nobody is left behind."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from hubbub import Random
from hubbub.core.errors import DecodeError, InvalidValue
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.keys import spread_private, spread_public


def test_processes_answer_as_the_key_does():
    key, numbers = DGKPrivate.generate(2048), Random(seed=1).uint64(2, 230)
    with spread_private(key, 2) as private, spread_public(key.public, 1) as public:
        ciphers = public.rerandomise(public.add_plain(public.encrypt(numbers[0]), numbers[1]))
        assert private.decrypt(ciphers).tolist() == (numbers[0] + numbers[1]).tolist()
        with pytest.raises(DecodeError, match="without a message"):
            private.decrypt([*ciphers, 3])
        with pytest.raises(InvalidValue, match="ciphertexts"):
            public.add_plain(ciphers, numbers[1][:5])
    assert str(key.p) not in repr(private)


_PARENT = """
import numpy as np
from hubbub.shuffle.dgk import DGKPrivate
from hubbub.shuffle.keys import spread_public
if __name__ == "__main__":
    with spread_public(DGKPrivate.generate(2048).public, 2) as public:
        public.encrypt(np.arange(300, dtype=np.uint64))
        print("ready", flush=True)
        input()
"""


@pytest.mark.slow
def test_processes_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    parent = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "ready\n"
    with open(f"/proc/{parent.pid}/task/{parent.pid}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    assert len(children) >= 2
    parent.kill()
    parent.communicate()
    for _ in range(100):
        alive = [pid for pid in children if _alive(pid)]
        if not alive:
            break
        time.sleep(0.1)
    assert not alive


def _alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_zero_processes_are_as_many_as_cores():
    key = DGKPrivate.generate(2048)
    with spread_public(key.public) as public:
        assert key.decrypt(public.encrypt(np.arange(3, dtype=np.uint64))).tolist() == [0, 1, 2]
