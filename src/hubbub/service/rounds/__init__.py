"""Asking and releasing: every question's protocol, driven by the clock."""
