"""Errors that users can cause, one class for each kind.

Each message states the problem, its place, and the remedy. Messages never contain a count of the
table or a person's id. Messages that refuse rows (`IngestError`) are for the custodian: they state
the number of flawed rows, and show a cell only if it is the code or the name of a public area in
another form, or a word for totals.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def quietly(
    action: Callable[[], T],
    explain: Callable[[Exception], Exception],
    kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> T:
    """Run an action of a library whose messages may quote rows, addresses or passwords.

    Its error is neither passed on nor kept as context: `explain` makes another one of it.
    """
    try:
        return action()
    except kinds as problem:
        refusal = explain(problem)
    raise refusal


def first_few(names: Sequence[object], most: int = 5) -> str:
    """The first names, quoted, for a message.

    >>> first_few(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    return ", ".join(map(repr, names[:most])) + ", ..." * (len(names) > most)


class InftdaError(Exception):
    """Base of all errors a user can cause and correct; the command line exits with 2."""


class HierarchyError(InftdaError):
    """The table of areas does not describe nested levels."""


class TreeError(InftdaError):
    """The axes and the order of refinement do not fit together."""


class IngestError(InftdaError):
    """The trips or flows cannot be read as counts."""


class PrivacyError(InftdaError):
    """A privacy parameter is missing, invalid, or asks for an unattainable guarantee."""


class BudgetError(PrivacyError):
    """Drawn noise differs from the planned noise."""


class LedgerError(PrivacyError):
    """A ledger is missing or damaged, or its data set does not have enough budget left."""


class OptimizeError(InftdaError):
    """A vector cannot be optimised without overflow, or the total cannot be reached."""


class ReleaseError(InftdaError):
    """A release folder is missing, damaged, or must not be overwritten."""


class UncheckedError(ReleaseError):
    """No check of a release failed, but this version cannot make all of them.

    Attributes:
        passed: the checks that passed, in words.
    """

    def __init__(self, message: str, passed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.passed = passed


class MissingExtraError(InftdaError):
    """An optional library is not installed; the message names the extra that brings it."""
