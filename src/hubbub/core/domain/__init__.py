"""Domains: the values that a field or a mechanism takes, and the integer codes that mechanisms read.

Each kind of domain is one file. `DOMAINS` finds it by its name in specs and collection files, and loads it when that
name is first used: a device loads only the kinds of its own fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.core.domain.base import NONE, Code, Domain, Values, as_domain
from hubbub.core.plugins import Registry

if TYPE_CHECKING:
    from hubbub.core.domain.base import Categorical as Categorical
    from hubbub.core.domain.base import Ordinal as Ordinal
    from hubbub.core.domain.numeric import KeyValue as KeyValue
    from hubbub.core.domain.numeric import Numeric as Numeric
    from hubbub.core.domain.sets import Sets as Sets
    from hubbub.core.domain.texts import Strings as Strings
    from hubbub.core.domain.vector import Vector as Vector

__all__ = ["DOMAINS", "NONE", "Code", "Domain", "Values", "as_domain"]

_HOMES = {
    "ordinal": "hubbub.core.domain.base:Ordinal",
    "categorical": "hubbub.core.domain.base:Categorical",
    "numeric": "hubbub.core.domain.numeric:Numeric",
    "strings": "hubbub.core.domain.texts:Strings",
    "sets": "hubbub.core.domain.sets:Sets",
    "keyvalue": "hubbub.core.domain.numeric:KeyValue",
    "vector": "hubbub.core.domain.vector:Vector",
    "bitstrings": "hubbub.core.domain.texts:BitStrings",
}
_KINDS = {home.partition(":")[2]: kind for kind, home in _HOMES.items()}

DOMAINS: Registry[Domain] = Registry("hubbub.domains", "hubbub.core.domain.base:Domain", _HOMES, named_by="kind")
"""Every kind of domain, by its name in specs."""


def __getattr__(name: str) -> type[Domain]:
    """The class of a domain, such as `Ordinal`, loaded when it is first used."""
    if name not in _KINDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return DOMAINS[_KINDS[name]]
