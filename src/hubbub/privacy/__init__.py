"""What is spent, exactly (audit), and what it buys (plan)."""
