"""Taking reports: from the bytes of a request to one transaction that counts each report once."""
