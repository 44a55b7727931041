"""Noise is drawn once: tasks that die, run twice or meet a lopsided table change nothing."""

from functools import partial

import fragile_division
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from inftda.privacy.unit import Unit
from inftda.reading import Columns

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'inftda-od[spark]'")

from fragile_division import Fragile, Hopeless

from inftda.cli.main import run
from inftda.demo import make_country
from inftda.errors import InftdaError, ReleaseError
from inftda.noise.bits import SeededSource
from inftda.pipeline import release
from inftda.spark import SparkEngine

BUDGET = {"epsilon": 1, "delta": 1e-8}
COUNTRY = make_country((3, 6, 24), 5_000, seed=3)


@pytest.fixture
def released(spark, tmp_path, monkeypatch):
    """Releases with a step that fails on executors."""
    spark.sparkContext.addPyFile(fragile_division.__file__)

    def call(name, division, *, tasks=4, **options):
        monkeypatch.setattr("inftda.spark.engine.SharedDivision", division)
        return release(
            COUNTRY.flows(), COUNTRY.areas, out=tmp_path / name,
            engine=SparkEngine(spark, tasks=tasks, driver_nodes=20), **BUDGET, **options,
        )  # fmt: skip

    return call


@pytest.fixture
def deaths(tmp_path_factory):
    """A folder with a file for every death."""
    return tmp_path_factory.mktemp("deaths")


@pytest.mark.slow
def test_a_task_that_died_and_ran_again_drew_the_same_noise(released, deaths):
    """Seeded, so that two releases can be compared: one undisturbed, one with two deaths."""
    calm = released("calm", partial(Fragile, folder=str(deaths), deaths=0), source=SeededSource(5))
    assert list(deaths.iterdir()) == []
    disturbed = released(
        "disturbed", partial(Fragile, folder=str(deaths), deaths=2), source=SeededSource(5)
    )
    assert len(list(deaths.iterdir())) == 2
    for path in calm.table.parent.iterdir():
        assert (disturbed.table.parent / path.name).read_bytes() == path.read_bytes()


@pytest.mark.slow
def test_a_release_that_cannot_be_finished_leaves_nothing_and_tells_nothing(released, tmp_path):
    with pytest.raises(ReleaseError, match="nothing was published") as caught:
        released("release", Hopeless, tasks=1)
    assert "confidential count" not in str(caught.value)
    assert caught.value.__context__ is None
    assert list(tmp_path.iterdir()) == []


def test_leaves_that_did_not_arrive_are_noticed(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("inftda.spark.tasks.unpack_cell", lambda _: iter(()))
    with pytest.raises(ReleaseError, match="nothing was published"):
        release(
            COUNTRY.flows(), COUNTRY.areas, out=tmp_path / "release",
            engine=SparkEngine(spark, tasks=2, driver_nodes=20), **BUDGET,
        )  # fmt: skip
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "said"), [({"tasks": 0}, "tasks"), ({"session": "yarn"}, "classic Spark session")]
)
def test_a_wrong_engine_is_refused(wrong, said):
    with pytest.raises(InftdaError, match=said):
        SparkEngine(**wrong)


def test_another_master_than_the_active_one_is_refused(spark, tmp_path):
    spark.range(1)
    with pytest.raises(InftdaError, match="already"):
        release(
            COUNTRY.flows(), COUNTRY.areas, out=tmp_path / "release",
            engine=SparkEngine(master="yarn"), **BUDGET,
        )  # fmt: skip


def test_settings_and_memory_of_the_session_are_as_before(spark, tmp_path):
    before = dict(spark.conf.getAll)
    engine = SparkEngine(spark, tasks=2, driver_nodes=20)
    release(COUNTRY.flows(), COUNTRY.areas, out=tmp_path / "release", engine=engine, **BUDGET)
    assert dict(spark.conf.getAll) == before
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_logs_of_executors_name_nobody(spark, executor_logs, tmp_path):
    people = pa.table(
        {
            "person": ["Jane-Doe-4711", "Jane-Doe-4711", "John-Doe-0815"],
            "origin": ["hideout-1", "hideout-2", "hideout-2"],
            "destination": ["hideout-2", "hideout-2", "hideout-1"],
        }
    )
    release(
        people, {"town": ["hideout-1", "hideout-2", "elsewhere"]}, out=tmp_path / "release",
        columns=Columns(person="person"), unit=Unit(neighbours="add-remove"), **BUDGET,
        engine=SparkEngine(spark, tasks=2, driver_nodes=20),
    )  # fmt: skip
    logs = [path.read_text() for path in executor_logs.glob("*/std*")]
    assert len(logs) == 4
    assert all("-Doe-" not in log for log in logs)
    assert all("hideout" not in log for log in logs)


def test_the_command_line_takes_spark(spark, tmp_path, capsys):
    assert spark is not None
    pq.write_table(COUNTRY.flows(), tmp_path / "flows.parquet")
    pa_csv.write_csv(COUNTRY.areas.to_table(), tmp_path / "areas.csv")
    arguments = [
        "release", tmp_path / "flows.parquet", "--areas", tmp_path / "areas.csv", "--epsilon", 1,
        "--delta", 1e-8, "--out", tmp_path / "release", "--engine", "spark",
    ]  # fmt: skip
    assert run([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    assert "5,000 trips in all" in capsys.readouterr().out
    assert run(["verify", str(tmp_path / "release")]) == 0
    arguments[-1] = "local"
    assert run([*map(str, arguments), "--master", "yarn"]) == 2
    assert "--engine spark" in capsys.readouterr().err
    arguments[-1] = "sparks"
    assert run([*map(str, arguments), "--force"]) == 2
    assert "local or spark" in capsys.readouterr().err
