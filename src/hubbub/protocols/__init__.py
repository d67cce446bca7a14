"""Conversations: the server asks, each device answers with one report, or abstains."""
