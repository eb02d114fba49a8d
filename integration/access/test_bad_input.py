"""Bad input: every wrong argument, address, certificate, password and ACL is told as what it is."""
