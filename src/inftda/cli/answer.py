"""Output of a table: to the screen, or to a file whose ending gives its format."""

from dataclasses import dataclass
from typing import Annotated, Final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from inftda.cli import output
from inftda.errors import InftdaError
from inftda.options import Force, KeepFormulas, Option, OutFile
from inftda.util.files import check_file, whole_file
from inftda.util.tabular import disarmed_table

FORMATS: Final = ("table", "csv", "json", "parquet")


@dataclass(frozen=True)
class Answer:
    """Options of commands with a table as output: its file and its format."""

    format_: Annotated[
        str | None,
        Option("Format; by default that of the file's ending, else a table.", "|".join(FORMATS)),
    ] = None
    out: OutFile = None
    force: Force = False
    keep_formulas: KeepFormulas = False

    @property
    def kind(self) -> str:
        """The format given by --format, else by the ending of --out; on the screen a table.

        Raises:
            InftdaError: there is no such format, the two contradict each other, or none is given.
        """
        if self.format_ is not None and self.format_ not in FORMATS:
            raise InftdaError(f"--format must be one of {', '.join(FORMATS)}, got {self.format_!r}")
        if self.out is None:
            return self.format_ or FORMATS[0]
        ending = self.out.suffix.lower().removeprefix(".")
        ended = ending if ending in FORMATS else None
        if self.format_ is not None and ended is not None and self.format_ != ended:
            raise InftdaError(
                f"--format {self.format_} contradicts the ending of {str(self.out)!r}; leave one "
                "of them out"
            )
        kind = self.format_ or ended
        if kind is None:
            endings = ", ".join(f".{known}" for known in FORMATS[1:])
            raise InftdaError(
                f"the ending of {str(self.out)!r} does not give a format; give one of "
                f"{endings}, or give --format"
            )
        return kind

    def check(self) -> None:
        """Refuse a file that cannot be written, before any work is done."""
        if self.kind == "parquet" and self.out is None:
            raise InftdaError("parquet cannot be printed; give a file with `out=`")
        if self.out is not None:
            check_file(self.out, force=self.force)

    @property
    def is_for_people(self) -> bool:
        """Whether it is shown on the screen as a table."""
        return self.kind == "table" and self.out is None

    def give(self, table: pa.Table) -> None:
        """Print or write an Arrow table."""
        if self.kind == "parquet" and self.out is not None:
            with whole_file(self.out) as partial:
                pq.write_table(table, partial)
        elif self.kind == "csv":
            output.give(_as_csv(table if self.keep_formulas else disarmed_table(table)), self.out)
        elif self.kind == "json":
            output.give(output.as_json(table.to_pylist()) + "\n", self.out)
        else:
            output.give(output.as_text(table), self.out)


def _as_csv(table: pa.Table) -> str:
    pa_csv.write_csv(table, sink := pa.BufferOutputStream())
    return sink.getvalue().to_pybytes().decode()  # type: ignore[no-any-return] # untyped library
