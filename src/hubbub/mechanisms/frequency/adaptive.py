"""The rule of section 3.4.1 for choosing an oracle: GRR, OUE or OLH."""

import math

from hubbub.core.domain import as_domain
from hubbub.core.errors import InvalidValue
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import OLH
from hubbub.mechanisms.frequency.oracle import DomainLike, FrequencyOracle
from hubbub.mechanisms.frequency.unary import OUE


def adaptive(*, epsilon: float, domain: DomainLike, most_bytes: int = 128) -> FrequencyOracle:
    """The oracle of smallest variance among GRR, OUE and OLH whose reports are small enough.

    GRR while d < 3 e^eps + 2; else OUE while its d bits fit in `most_bytes`; else OLH, as accurate in a few bytes.

    Parameters
    ----------
    epsilon
        What one report may spend.
    domain
        A size, a list of names, or a Domain.
    most_bytes
        The largest report that is acceptable.

    Example:
        >>> [type(adaptive(epsilon=1.0, domain=d)).__name__ for d in (10, 100, 10_000)]
        ['GRR', 'OUE', 'OLH']

    References
    ----------
    T. Wang, 2021, section 3.4.1.
    """
    size = as_domain("domain", domain).size
    if size is None:
        raise InvalidValue("domain", domain, "a domain with a size")
    direct = GRR(epsilon=epsilon, domain=domain)
    if size < 3 * math.exp(min(direct.epsilon, 50.0)) + 2:
        return direct
    if -(-size // 8) <= most_bytes:
        return OUE(epsilon=epsilon, domain=domain)
    return OLH(epsilon=epsilon, domain=domain)
