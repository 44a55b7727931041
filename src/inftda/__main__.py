"""`python -m inftda` is the command line."""

from inftda.cli.main import main

main()
