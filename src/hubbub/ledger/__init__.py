"""What a device has promised and spent: promises, the book of debits, its file, its clock."""
