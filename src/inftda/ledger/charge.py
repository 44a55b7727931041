"""A release that is to be paid for: checked beforehand, charged just before its first draw."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inftda.errors import LedgerError, PrivacyError
from inftda.ledger.budget import Cost
from inftda.ledger.ledger import MAX_NOTE, Ledger
from inftda.ledger.sources import FileMark, file_marks
from inftda.privacy.spending import ReleasePlan
from inftda.privacy.unit import PrivacyUnit


@dataclass(slots=True)
class Charge:
    """A release that is to be charged to a data set when its noise is about to be drawn."""

    ledger: Ledger
    dataset: str
    cost: Cost
    unit: PrivacyUnit
    mechanism: str
    note: str
    files: tuple[FileMark, ...] = ()
    number: int | None = None

    @classmethod
    def to(  # noqa: PLR0913 - who pays, for what
        cls,
        ledger: "str | Path | Ledger | None",
        dataset: str | None,
        plan: ReleasePlan,
        *,
        is_private: bool,
        mechanism: str,
        out: str | Path | None,
        table: Any = None,
    ) -> "Charge | None":
        """Check that a release can be paid for; nothing is charged yet.

        Where the table lies is noted with the charge, if it is a file.

        Returns:
            None if there is no ledger.

        Raises:
            LedgerError: it cannot, or ledger and data set are not both given.
            PrivacyError: the release is made with a seed and promises nothing.
        """
        if ledger is None and dataset is None:
            return None
        if ledger is None or dataset is None:
            raise LedgerError("a ledger and a data set go together; give both or neither")
        if not is_private:
            raise PrivacyError(
                "a release made with a seed promises nothing, so it cannot be charged to a "
                "ledger; leave out the seed or the ledger"
            )
        opened = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        if out is not None and opened.path.resolve().is_relative_to(Path(out).resolve()):
            raise LedgerError(
                f"the ledger {str(opened.path)!r} lies in the folder to be written, which is "
                "replaced as a whole; keep it elsewhere"
            )
        # The name of the folder tells releases apart. Where it lies, as somebody typed it, may name
        # people and machines, and a ledger is exported for others to read.
        where = "" if out is None else Path(out).resolve().name
        note = "".join(sign if sign.isprintable() else "?" for sign in where)[:MAX_NOTE]
        charge = cls(opened, dataset, Cost.of(plan), plan.unit, mechanism, note, file_marks(table))
        opened.account(dataset).pool_for(charge.cost, charge.unit)
        return charge

    def pay(self) -> None:
        """Charge it, once.

        Raises:
            LedgerError: the budget was spent in the meantime, or this was charged before.
        """
        if self.number is not None:
            raise LedgerError("this release was charged already; a second one costs again")
        self.number = self.ledger.charge(
            self.dataset,
            self.cost,
            self.unit,
            mechanism=self.mechanism,
            note=self.note,
            files=self.files,
        )

    def note_published(self) -> None:
        """Record that the release is complete.

        It changes no amount, and the release is published, so a failure here is not a failure of
        the release: the entry goes on saying that it is not known to be published.
        """
        with suppress(LedgerError, OSError):
            self.ledger.note_published(self.number or 0)
