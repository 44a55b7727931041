"""A table whose release takes long: hundreds of millions of cells to draw."""


def write_slow_table(folder):
    """Write `many.csv`, areas, and `long.csv`, flows."""
    towns = [f"{i:06d}" for i in range(20_000)]
    rows = ["origin,destination,count", *(f"{town},{town},999" for town in towns)]
    (folder / "many.csv").write_text("\n".join(["town", *towns]))
    (folder / "long.csv").write_text("\n".join(rows))
