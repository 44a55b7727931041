"""ISTAT's matrices: small files of the official layouts, written here."""

import io
import stat
import zipfile

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.errors import IngestError
from inftda.hierarchy import Hierarchy
from inftda.lab.istat import municipalities as istat_municipalities
from inftda.lab.istat import sections as istat_sections
from inftda.lab.istat.importer import REGION_OF, import_istat

# Census sections -------------------------------------------------------------------------------

END = [
    "CODREG", "REGIONE", "CODPRO", "PROVINCIA", "CODCOM", "COMUNE", "PROCOM", "CODLOC",
    "LOCALITA", "CODASC", "NOMEASC", "ACE", "NSEZ",
]  # fmt: skip
HEADER = [f"{name}_{end}" for end in ("ORIG", "DEST") for name in END]
HEADER += ["TOTALE", "TOTALE_STUDENTI", "TOTALE_LAVORATORI"]


def end_cells(procom, ace, nsez):
    """Cells of one end; the names have letters that are not ASCII."""
    names = ["1", "Piemonte", "1", "Torino", "1", "Agliè", procom, "10001", "Agliè, località"]
    return [*names, "0", "", ace, nsez]


def section_row(origin, destination, total):
    return ";".join([*end_cells(*origin), *end_cells(*destination), str(total), "0", str(total)])


def write_sections(path, regions, *, header=None):
    """A zip of zips: region name to rows."""
    header = ";".join(header or HEADER)
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr("Pendolarismo per sezione di censimento/leggimi.pdf", b"%PDF")
        for region, rows in regions.items():
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as inner:
                text = "\r\n".join([header, *rows, ""])
                inner.writestr(f"{region}.csv", text.encode("iso-8859-1"))
            name = f"Pendolarismo per sezione di censimento/{region}.zip"
            outer.writestr(name, packed.getvalue())
    return path


AGLIE, AGLIE_2, AIRASCA = ("1001", "1", "1"), ("1001", "1", "12"), ("1002", "2", "3")
MILAN = ("015146", "33", "6077")
PIEDMONT = [
    section_row(AGLIE, AGLIE_2, 4),
    section_row(AGLIE, AIRASCA, 10),
    section_row(AGLIE_2, MILAN, 2),
]
LOMBARDY = [section_row(MILAN, MILAN, 7), section_row(MILAN, ("", "", ""), 3)]


def flows_of(folder, *axes):
    table = pq.read_table(folder / "flows.parquet")
    assert table.column_names == ["origin", "destination", *axes, "count"]
    return {tuple(row.values())[:-1]: row["count"] for row in table.to_pylist()}


@pytest.fixture
def sections(tmp_path):
    return write_sections(
        tmp_path / "matrici.zip", {"R01_Piemonte": PIEDMONT, "R03_Lombardia": LOMBARDY}
    )


def test_sections_of_all_regions_are_read(sections, tmp_path):
    made = import_istat(sections, tmp_path / "out")
    assert flows_of(tmp_path / "out") == {
        ("0010010000001", "0010010000012"): 4,
        ("0010010000001", "0010020000003"): 10,
        ("0010010000012", "0151460006077"): 2,
        ("0151460006077", "0151460006077"): 7,
        ("0151460006077", "outside"): 3,
    }
    assert (made.layout, made.n_flows, made.n_trips, made.n_outside) == ("sections", 5, 26, 3)


def test_sections_have_five_levels(sections, tmp_path):
    import_istat(sections, tmp_path / "out")
    table = Hierarchy.read(tmp_path / "out" / "areas.csv").to_table()
    assert table.column_names == ["region", "province", "municipality", "ace", "section"]
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("01", "001", "001001", "001001001", "0010010000001"),
        ("01", "001", "001001", "001001001", "0010010000012"),
        ("01", "001", "001002", "001002002", "0010020000003"),
        ("03", "015", "015146", "015146033", "0151460006077"),
    ]
    ends = Hierarchy.read(tmp_path / "out" / "destinations.csv")
    assert ends == Hierarchy.read(table).with_outside()


def test_rows_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(istat_sections, "BLOCK", 1000)
    monkeypatch.setattr(istat_sections, "MOST_SEEN", 10)
    rows = [section_row(("1001", "1", str(n % 7)), ("1002", "2", str(n)), n) for n in range(1, 400)]
    seen = []
    made = import_istat(
        write_sections(tmp_path / "m.zip", {"R01": rows}),
        tmp_path / "out",
        progress=lambda *step: seen.append(step),
    )
    assert made.n_trips == sum(range(1, 400))
    assert len(seen) > 10
    assert all(done <= total for _, done, total in seen)
    assert seen[-1][1] == seen[-1][2]


def test_a_section_without_its_section_area_at_one_end_gets_it_from_the_other(tmp_path):
    rows = [section_row(AGLIE, AIRASCA, 1), section_row(AIRASCA, ("1001", "", "1"), 1)]
    made = import_istat(write_sections(tmp_path / "m.zip", {"R01": rows}), tmp_path / "out")
    assert made.areas.codes(4).to_pylist() == ["001001001", "001002002"]


def test_columns_are_found_by_name_in_any_order_and_case(tmp_path):
    names = [name.lower() for name in reversed(HEADER)]
    rows = [";".join(reversed(row.split(";"))) for row in PIEDMONT]
    matrix = write_sections(tmp_path / "m.zip", {"R01": rows}, header=names)
    assert import_istat(matrix, tmp_path / "out").n_trips == 16


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([section_row(("", "", ""), AGLIE, 1)], "no place of residence"),
        ([section_row(AGLIE, AGLIE_2, -1)], "below 0"),
        ([section_row(AGLIE, AGLIE_2, "x")], "download the matrix again"),
        ([PIEDMONT[0] + ";1"], "number of cells"),
        ([section_row(("1001", "1", "12345678"), AGLIE, 1)], "too many digits"),
        ([section_row(("1001", "1234", "1"), AGLIE, 1)], "too many digits"),
        ([section_row(AGLIE, ("1001", "2", "1"), 1)], "two section areas"),
        ([section_row(("111001", "1", "1"), AGLIE, 1)], "no province '111'"),
    ],
)
def test_sections_that_are_not_as_published_are_told(rows, message, tmp_path):
    matrix = write_sections(tmp_path / "m.zip", {"R01": rows})
    with pytest.raises(IngestError, match=message):
        import_istat(matrix, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_pair_without_trips_still_tells_of_its_areas(tmp_path):
    rows = [section_row(AGLIE, AIRASCA, 0), section_row(AGLIE, AGLIE, 2)]
    made = import_istat(write_sections(tmp_path / "m.zip", {"R01": rows}), tmp_path / "out")
    assert made.n_trips == 2
    assert made.areas.n_areas(5) == 2


def test_a_missing_column_is_told(tmp_path):
    header = ["X" if name == "PROCOM_DEST" else name for name in HEADER]
    matrix = write_sections(tmp_path / "m.zip", {"R01": PIEDMONT}, header=header)
    with pytest.raises(IngestError, match="no column PROCOM_DEST"):
        import_istat(matrix, tmp_path / "out")


def test_errors_do_not_quote_rows(tmp_path):
    matrix = write_sections(tmp_path / "m.zip", {"R01": [section_row(AGLIE, AGLIE_2, "4x4")]})
    with pytest.raises(IngestError) as caught:
        import_istat(matrix, tmp_path / "out")
    assert "4x4" not in str(caught.value)
    assert caught.value.__suppress_context__


# Municipalities --------------------------------------------------------------------------------


def short_row(home, away, number, *, sex="1", reason="2", place="2"):
    return f"S 1 {home} {sex} {reason} {place} {away} 000 +  + +      ND {number:07d}"


def long_row(home, away, estimate, *, sex="1", reason="2", place="2", means="07"):
    cells = f"{sex} {reason} {place} {away} 000 {means} 2 1"
    return f"L 1 {home} {cells} {estimate:>12}      ND"


MUNICIPALITIES = [
    short_row("001 001", "001 001", 40, place="1"),
    short_row("001 001", "000 000", 5, place="1", sex="2"),  # the same town, not repeated
    short_row("001 001", "015 146", 7),
    short_row("001 001", "015 146", 2, sex="2", reason="1"),
    short_row("015 146", "215 000", 3, place="3"),  # abroad
    short_row("015 146", "000 ND", 1),  # nobody knows where
    long_row("001 001", "001 001", "44.6", place="1", means="12"),
    long_row("001 001", "015 146", "0000008.4"),
    long_row("001 001", "015 146", "0.6", means="01"),
    long_row("015 146", "000 000", "3.2", place="3", means="+"),
]


def write_municipalities(path, rows):
    with zipfile.ZipFile(path, "w") as outer:
        outer.writestr("MATRICE PENDOLARISMO 2011/Leggimi.txt", "Tracciato record dei file\n")
        text = "\r\n".join([*rows, ""])
        outer.writestr("MATRICE PENDOLARISMO 2011/matrix_pendo2011_10112014.txt", text)
    return path


@pytest.fixture
def towns(tmp_path):
    return write_municipalities(tmp_path / "matrici_2011.zip", MUNICIPALITIES)


def test_municipalities_are_summed_up_from_exact_numbers(towns, tmp_path):
    made = import_istat(towns, tmp_path / "out")
    assert flows_of(tmp_path / "out") == {
        ("001001", "001001"): 45,
        ("001001", "015146"): 9,
        ("015146", "outside"): 4,
    }
    assert (made.layout, made.n_trips, made.n_outside) == ("municipalities", 58, 4)
    assert made.areas.level_names == ("region", "province", "municipality")
    assert made.areas.codes(1).to_pylist() == ["01", "03"]


def test_sex_and_reason_are_exact_too(towns, tmp_path):
    made = import_istat(towns, tmp_path / "out", axes=["sex", "reason"])
    flows = flows_of(tmp_path / "out", "sex", "reason")
    assert flows["001001", "001001", "1", "2"] == 40
    assert flows["001001", "001001", "2", "2"] == 5
    assert flows["001001", "015146", "2", "1"] == 2
    assert made.n_trips == 58
    sex = pa_csv.read_csv(tmp_path / "out" / "sex.csv")
    assert sex.to_pydict() == {"sex": [1, 2]}


def test_transport_is_taken_from_the_estimates(towns, tmp_path):
    made = import_istat(towns, tmp_path / "out", axes=["transport"])
    # In order: 44.6, 0.6, 8.4 and 3.2, which sum up to 44.6, 45.2, 53.6 and 56.8.
    assert flows_of(tmp_path / "out", "transport") == {
        ("001001", "001001", "12"): 45,
        ("001001", "015146", "07"): 9,
        ("015146", "outside", "missing"): 3,
    }
    assert made.n_trips == 57


def test_rounded_estimates_never_drift(tmp_path):
    rows = [long_row("001 001", f"001 {n:03d}", "0.3") for n in range(1, 1000)]
    made = import_istat(
        write_municipalities(tmp_path / "m.zip", rows), tmp_path / "out", axes=["transport"]
    )
    assert made.n_trips == 300
    assert set(flows_of(tmp_path / "out", "transport").values()) == {1}
    # A place that only rounds to nothing is a place all the same.
    assert made.areas.n_areas(3) == 999


def test_axes_have_their_public_list_of_codes_whatever_occurs(towns, tmp_path):
    import_istat(towns, tmp_path / "out", axes=["transport", "departure", "duration"])
    modes = Hierarchy.read(tmp_path / "out" / "transport.csv")
    assert modes.codes(1).to_pylist() == [*(f"{n:02d}" for n in range(1, 13)), "missing"]
    assert Hierarchy.read(tmp_path / "out" / "duration.csv").n_areas(1) == 5


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (short_row("001 000", "001 001", 1), "no place of residence"),
        (short_row("001 001", "001 001", 1) + " 1", "15 cells"),
        (short_row("001 001", "001 001", 1)[:-7] + "ND", "no number"),
        (short_row("001 001", "001 001", 1, sex="3"), "sex '3'"),
        (short_row("111 001", "001 001", 1), "no province '111'"),
    ],
)
def test_municipalities_that_are_not_as_published_are_told(row, message, tmp_path):
    matrix = write_municipalities(tmp_path / "m.zip", [*MUNICIPALITIES, row])
    with pytest.raises(IngestError, match=message):
        import_istat(matrix, tmp_path / "out", axes=["sex"])
    assert not (tmp_path / "out").exists()


def test_blocks_without_a_row_of_the_wanted_kind_are_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(istat_municipalities, "BLOCK", 400)
    rows = [row for row in MUNICIPALITIES if row[0] == "L"] * 20
    rows += [row for row in MUNICIPALITIES if row[0] == "S"]
    matrix = write_municipalities(tmp_path / "m.zip", rows)
    assert import_istat(matrix, tmp_path / "out").n_trips == 58


def test_a_matrix_without_the_rows_needed_is_told(tmp_path):
    matrix = write_municipalities(tmp_path / "m.zip", MUNICIPALITIES[:3])
    with pytest.raises(IngestError, match="no rows of kind L"):
        import_istat(matrix, tmp_path / "out", axes=["transport"])


# Both ------------------------------------------------------------------------------------------


def test_destinations_outside_can_be_dropped_and_are_counted(towns, tmp_path):
    made = import_istat(towns, tmp_path / "out", abroad="drop")
    assert (made.n_trips, made.n_outside) == (54, 4)
    assert ("015146", "outside") not in flows_of(tmp_path / "out")
    assert not (tmp_path / "out" / "destinations.csv").exists()
    assert "--areas" in made.next_command


def test_the_next_command_names_every_file_that_was_written(towns, tmp_path):
    out = tmp_path / "out"
    made = import_istat(towns, out, axes=["sex"])
    files = {path.name for path in out.iterdir()}
    assert files == {"flows.parquet", "areas.csv", "destinations.csv", "sex.csv"}
    assert all(str(out / name) in made.next_command for name in files)


def test_files_are_for_their_owner_only(towns, tmp_path):
    import_istat(towns, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_provinces_are_those_of_2011():
    assert sorted(REGION_OF) == [f"{n:03d}" for n in range(1, 111)]
    assert set(REGION_OF.values()) == {f"{n:02d}" for n in range(1, 21)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"axes": ["colour"]}, "no axis 'colour'"),
        ({"axes": ["sex", "sex"]}, "twice"),
        ({"abroad": "keep"}, "'outside' or 'drop'"),
    ],
)
def test_what_cannot_be_had_is_told(options, message, towns, tmp_path):
    with pytest.raises(IngestError, match=message):
        import_istat(towns, tmp_path / "out", **options)


def test_sections_have_no_further_axes(sections, tmp_path):
    with pytest.raises(IngestError, match="not the municipality matrix"):
        import_istat(sections, tmp_path / "out", axes=["sex"])


def test_a_folder_that_exists_is_not_touched(towns, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(IngestError, match="exists already"):
        import_istat(towns, tmp_path / "out")


def test_files_that_are_something_else_are_told(tmp_path):
    with pytest.raises(IngestError, match="no file"):
        import_istat(tmp_path / "none.zip", tmp_path / "out")
    (tmp_path / "text.zip").write_text("no zip")
    with pytest.raises(IngestError, match="not a zip"):
        import_istat(tmp_path / "text.zip", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("readme.txt", "hello")
    with pytest.raises(IngestError, match="as downloaded"):
        import_istat(tmp_path / "other.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_region_is_told(sections, tmp_path):
    data = bytearray(sections.read_bytes())
    place = data.index(b"R03_Lombardia.csv") + 60
    data[place : place + 20] = b"\0" * 20
    sections.write_bytes(bytes(data))
    with pytest.raises(IngestError, match="damaged"):
        import_istat(sections, tmp_path / "out")
    assert not (tmp_path / "out").exists()
