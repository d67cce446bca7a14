"""The methods that chapter 6 compares CALM with. Each gives unbiased tables, or what it gives instead."""
