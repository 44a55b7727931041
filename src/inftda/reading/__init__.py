from dataclasses import dataclass
from typing import Any

from inftda.ingest import CsvFile, Leaves, SqlQuery
from inftda.ingest import read_leaves as _r


@dataclass(frozen=True, kw_only=True)
class TableSpec:
    axes: tuple[Any, ...]
    count: str | None = "auto"
    person: str | None = None
    unit: Any = None
    unplaceable: str = "error"


def read_leaves(
    table: Any, spec: TableSpec, *, random_source: Any = None, say: Any = None, threads: Any = None
) -> Leaves:
    return _r(
        table,
        spec.axes,
        count=spec.count,
        person=spec.person,
        unit=spec.unit,
        unplaceable=spec.unplaceable,
        random_source=random_source,
        say=say,
        threads=threads,
    )
