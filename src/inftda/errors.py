"""Everything that can go wrong on the user's side, as typed errors.

Each message says what is wrong, where, and what to do. Messages are shown to people who
may be far from the confidential data, so they never contain a true count or a person's id.
"""


class InftdaError(Exception):
    """Base of all errors a user can cause and correct; the command line exits with 2."""


class HierarchyError(InftdaError):
    """The table of areas does not describe nested levels."""


class TreeError(InftdaError):
    """The axes and the order of refinement do not fit together."""


class IngestError(InftdaError):
    """The trips or flows cannot be read as counts."""


class PrivacyError(InftdaError):
    """A privacy parameter is missing, invalid, or asks for what cannot be promised."""


class BudgetError(PrivacyError):
    """What was drawn, or is about to be drawn, is not what was planned."""


class LedgerError(PrivacyError):
    """A ledger is missing or damaged, or its data set does not have enough budget left."""


class OptimizeError(InftdaError):
    """A vector cannot be optimised without overflow, or the total cannot be reached."""


class ReleaseError(InftdaError):
    """A release folder is missing, damaged, or must not be overwritten."""


class MissingExtraError(InftdaError):
    """An optional library is not installed; the message names the extra that brings it."""
