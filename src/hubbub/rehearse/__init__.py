"""Rehearsals: a file of values takes the place of the devices."""
