"""The audit of every registered mechanism, at many settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from hubbub.core.errors import InvalidValue
from hubbub.core.plugin_guard import PluginFailed
from hubbub.mechanisms import MECHANISMS, randomizers
from hubbub.mechanisms.base import Mechanism
from hubbub.privacy.audit import Audit, audit
from hubbub.privacy.probes import domain_of, required_fields


@dataclass(frozen=True)
class RefusedSetting:
    """A setting that a mechanism's constructor does not accept, and its reason."""

    mechanism: str
    epsilon: float
    domain: int | None
    reason: str


class Audits(list[Audit]):
    """A list of audits, the settings that were refused, and the mechanisms of other packages that failed, and why."""

    refused: tuple[RefusedSetting, ...] = ()
    broken: Mapping[str, str] = MappingProxyType({})


def audit_all(
    epsilons: Sequence[float] = (0.1, 0.5, 1, 2, 4, 8),
    domains: Sequence[int] = (2, 3, 16, 1024),
    progress: Callable[[int, int], object] | None = None,
) -> Audits:
    """Audit every registered mechanism at every epsilon and domain.

    A mechanism that takes no size as its domain is built from the required fields of its own examples, at every
    epsilon. Settings that a constructor refuses are in `refused`, with its reason. A mechanism of another package that
    fails is in `broken`, and all others are audited.

    Parameters
    ----------
    epsilons, domains
        The settings.
    progress
        Called after each setting with how many are done, and of how many.
    """
    audits = Audits()
    refused: list[RefusedSetting] = []
    broken = MECHANISMS.broken()
    settings = []
    for name, kind in randomizers().items():
        try:
            settings += [(kind, *setting) for setting in _settings(kind, epsilons, domains)]
        except PluginFailed as error:
            broken[name] = str(error)
    for done, (kind, epsilon, size, options) in enumerate(settings, start=1):
        try:
            mechanism = kind(epsilon=epsilon, **options)
        except InvalidValue as error:
            refused.append(RefusedSetting(kind.__name__, epsilon, size, str(error)))
        except PluginFailed as error:
            broken[kind.__name__] = str(error)
        else:
            try:
                audits.append(audit(mechanism))
            except PluginFailed as error:
                broken[kind.__name__] = str(error)
        if progress is not None:
            progress(done, len(settings))
    audits.refused, audits.broken = tuple(refused), broken
    return audits


def _settings(
    kind: type[Mechanism], epsilons: Sequence[float], domains: Sequence[int]
) -> Iterator[tuple[float, int | None, dict[str, Any]]]:
    examples = list(kind.examples())
    if any((domain := domain_of(example)) is not None and domain.size is not None for example in examples):
        yield from ((epsilon, size, {"domain": size}) for epsilon in epsilons for size in domains)
        return
    for example in examples:
        options = {name: getattr(example, name) for name in required_fields(kind)}
        yield from ((epsilon, None, options) for epsilon in epsilons)
