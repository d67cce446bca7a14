"""The tables and figures of SaO2."""
