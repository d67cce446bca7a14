"""What is sent: uploads of devices, batches of relays and of shufflers."""
