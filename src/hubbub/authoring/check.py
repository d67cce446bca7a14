"""Checking a collection before anyone is asked."""

from __future__ import annotations

from typing import Any

from hubbub.alarms.plan import AlarmPlan
from hubbub.authoring.alarms import alarm_findings
from hubbub.authoring.diff import changes
from hubbub.authoring.rules import RULES
from hubbub.collection.document import Collection
from hubbub.collection.finding import Finding, UnsafeCollection
from hubbub.collection.safety import unsafe_terms
from hubbub.collection.sealing import open_sealed
from hubbub.questions import read_collection

_ORDER = ("error", "warning", "note")


def check(collection: Collection, against: Collection | None = None, alarms: AlarmPlan | None = None) -> list[Finding]:
    """All that is wrong with a collection, or worth knowing: errors first. With an older version, what would break.

    The alarms, which are no part of it, are looked at if they are given.
    """
    findings = [finding for rule in RULES for finding in rule(collection)]
    known = [finding.where for finding in findings if finding.level == "error"]
    # What devices refuse, where no rule said it better.
    findings += [
        finding for finding in unsafe_terms(collection) if not any(where.startswith(finding.where) for where in known)
    ]
    if against is not None:
        findings += changes(collection, against)
    if alarms is not None:
        findings += alarm_findings(collection, alarms)
    return sorted(findings, key=lambda finding: _ORDER.index(finding.level))


def refuse_unsafe(collection: Collection) -> Collection:
    """The same collection, if no rule calls it an error."""
    errors = [finding for finding in check(collection) if finding.level == "error"]
    if errors:
        raise UnsafeCollection(errors)
    return collection


def open_collection(document: object, public: bytes | Any) -> Collection:
    """The collection of a sealed document with the kinds of its questions: signed, what they compile to, and safe.

    A device opens it by `hubbub.collection.safety.open_collection`, which knows no kinds.
    """
    return refuse_unsafe(read_collection(open_sealed(document, public)))
