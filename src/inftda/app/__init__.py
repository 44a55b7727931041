"""`inftda app`: the steps from a table to a verified release, in a browser on this machine."""
