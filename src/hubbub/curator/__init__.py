"""Releases by a trusted curator: whoever has the values publishes a stream that is private in every single value."""
