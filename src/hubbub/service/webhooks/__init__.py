"""Alarms told to other programs: signed, tried again until they are taken, and never in the way of reports."""
