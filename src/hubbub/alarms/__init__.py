"""Alarms: their definitions, the limits that keep false alarms rare, and the sequential test. No service is needed."""

from hubbub.alarms.definition import AlarmDefinition
from hubbub.alarms.limits import AlarmLimits, limits_for
from hubbub.alarms.plan import AlarmPlan, WatchedQuantity
from hubbub.alarms.sequential import Verdict, WatchState

__all__ = ["AlarmDefinition", "AlarmLimits", "AlarmPlan", "Verdict", "WatchState", "WatchedQuantity", "limits_for"]
