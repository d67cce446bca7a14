"""The methods that chapter 4 compares PEM with, each with the budget split as published and with the users divided."""
