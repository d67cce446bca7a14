"""The collector's half of alarms: it judges each step's estimates, stores the events, and tells listeners."""
