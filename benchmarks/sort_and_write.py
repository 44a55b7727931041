"""What a release is measured against: DuckDB reads a table, sorts it, and writes it again.

python benchmarks/sort_and_write.py FLOWS AREAS OUT

Every code is looked up among the areas, rows are sorted in the order of the areas, and as many
rows and columns as came in go out as Parquet, compressed like a release. Whatever reads a
table, checks its codes and writes it in order has to do this much; a release also counts,
plans, draws noise and optimises, and writes fewer rows.
"""

import sys

import duckdb


def main():
    flows, areas, out = sys.argv[1:]
    with duckdb.connect() as database:
        names = database.read_csv(areas, all_varchar=True).columns
        database.execute(f"""
            CREATE TABLE areas AS
            SELECT {names[-1]} AS code, row_number() OVER (ORDER BY {", ".join(names)}) AS index
            FROM read_csv('{areas}', all_varchar = true)
        """)
        database.execute(f"""
            COPY (
                SELECT origin, destination, count
                FROM read_parquet('{flows}') AS flows
                JOIN areas AS starts ON starts.code = origin
                JOIN areas AS ends ON ends.code = destination
                ORDER BY ends.index, starts.index
            ) TO '{out}' (FORMAT parquet, COMPRESSION zstd)
        """)


if __name__ == "__main__":
    main()
