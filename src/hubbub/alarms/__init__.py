"""Alarms: what is watched, how surely, and the sequential test that decides; pure, and without a service."""

from hubbub.alarms.definition import AlarmDefinition
from hubbub.alarms.limits import AlarmLimits, limits_for
from hubbub.alarms.plan import AlarmPlan
from hubbub.alarms.sequential import Verdict, WatchState
from hubbub.alarms.watch import WatchedQuantity

__all__ = ["AlarmDefinition", "AlarmLimits", "AlarmPlan", "Verdict", "WatchState", "WatchedQuantity", "limits_for"]
