"""The rivals of PEM in chapter 4, each with epsilon split as published and with the people divided."""
