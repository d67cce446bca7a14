"""Views: functions from a person's private value to the input of a mechanism."""
