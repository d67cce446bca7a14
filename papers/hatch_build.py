"""The papers use the internals of hubbub: they have its version, and ask for that one alone."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    """Reads the version from the repository's `hubbub`, or from the metadata of a source distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the version, and the dependency on it."""
        here = Path(self.root)
        unpacked = here / "PKG-INFO"
        source = unpacked if unpacked.exists() else here.parent / "src" / "hubbub" / "__init__.py"
        (version,) = re.findall(r'^(?:Version: |__version__ = ")([^"\s]+)', source.read_text(), re.MULTILINE)
        metadata["version"] = version
        metadata["dependencies"] = [f"hubbub-ldp[analytics,shuffle]=={version}"]
