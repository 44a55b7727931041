"""How long tests wait for something before they call it a hang.

Far longer than anything takes, also on a machine that is busy with other work: a test says
what happens, not how fast.
"""

PATIENCE = 600
"""Seconds."""
