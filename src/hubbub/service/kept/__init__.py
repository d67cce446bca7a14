"""Single reports that questions keep."""
