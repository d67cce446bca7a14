import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from hubbub.data import DataError
from hubbub.data.packages import digest, extract


def tar(path: Path, *entries: tuple[str, bytes | tarfile.TarInfo]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in entries:
            info = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            data = content if isinstance(content, bytes) else b""
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "inner" / "out"
    folder.mkdir(parents=True)
    return folder


def test_only_what_is_asked_for_is_written(tmp_path: Path, out: Path) -> None:
    package = tar(tmp_path / "p.tgz", ("p/a.csv", b"1"), ("p/b.csv", b"2"), ("../evil", b"3"), ("/evil", b"4"))
    assert extract(package, ("p/b.csv",), out) == {"b.csv": digest(out / "b.csv")}
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["b.csv", "p.tgz"]


@pytest.mark.parametrize("member", ["../evil", "p/../../evil", "/evil", "p/..", "p\\..\\evil", "c:evil"])
def test_a_member_that_leads_out_is_refused(tmp_path: Path, out: Path, member: str) -> None:
    wheel = tmp_path / "p.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, "3")
    for package in (wheel, tar(tmp_path / "p.tgz", (member, b"3"))):
        with pytest.raises(DataError, match="leads out"):
            extract(package, (member,), out)
    assert not list(out.iterdir())
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_link_is_refused(tmp_path: Path, out: Path, kind: bytes) -> None:
    (tmp_path / "secret").write_text("secret")
    package = tar(tmp_path / "p.tgz", ("p/a.csv", link("p/a.csv", "../secret", kind)))
    with pytest.raises(DataError, match="a link or a special file"):
        extract(package, ("p/a.csv",), out)
    assert not list(out.iterdir())


def test_a_link_in_a_wheel_is_refused(tmp_path: Path, out: Path) -> None:
    info = zipfile.ZipInfo("p/a.csv")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "p.whl", "w") as archive:
        archive.writestr(info, "../secret")
    with pytest.raises(DataError, match="a link or a special file"):
        extract(tmp_path / "p.whl", ("p/a.csv",), out)


def test_missing_twice_and_truncated(tmp_path: Path, out: Path) -> None:
    whole = tar(tmp_path / "p.tgz", ("p/a.csv", bytes(range(256)) * 99), ("p/a.csv", b"2"))
    with pytest.raises(DataError, match=r"no file b\.csv"):
        extract(whole, ("p/b.csv",), out)
    with pytest.raises(DataError, match="twice"):
        extract(whole, ("p/a.csv",), out)
    (out / "a.csv").unlink()
    (tmp_path / "q.tgz").write_bytes(whole.read_bytes()[:200])
    with pytest.raises(DataError, match="not a whole archive"):
        extract(tmp_path / "q.tgz", ("p/a.csv",), out)
