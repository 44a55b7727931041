"""Output folders that cannot or must not be written, and machines that fail."""

import os
import resource
import subprocess

import pytest

from inftda import pipeline as publish
from inftda.cli.main import run
from inftda.publication import folder as folders

BUDGET = ("--epsilon", "1", "--delta", "1e-9")
RELEASE = ("release", "flows.csv", "--areas", "areas.csv", *BUDGET)
IS_ROOT = os.geteuid() == 0


@pytest.fixture
def things(place):
    """Things that stand where a release could go."""
    (place / "file").write_text("precious")
    (place / "full").mkdir()
    (place / "full" / "thesis.txt").write_text("years of work")
    (place / "extension").mkdir()
    (place / "extension" / "manifest.json").write_text('{"manifest_version": 3}')
    (place / "empty").mkdir()
    (place / "dangling").symlink_to("nowhere")
    (place / "linked").symlink_to("empty")
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("out", "without_force", "by_force"),
    [
        ("file", "exists already", "not replaced"),
        ("full", "exists already", "not replaced"),
        ("extension", "exists already", "not replaced"),
        ("", "exists already", "not replaced"),
        ("/", "exists already", "not replaced"),
        ("no/where/out", "make it first", "make it first"),
        ("file/out", "make it first", "make it first"),
        ("dangling", "is a link", "is a link"),
        ("linked", "is a link", "is a link"),
        ("x" * 201, "shorter", "shorter"),
        ("x" * 5000, "shorter", "shorter"),
        ("/proc/out", "choose another", "choose another"),
    ],
)
@pytest.mark.usefixtures("things")
def test_a_folder_that_cannot_be_made_is_refused_and_force_replaces_releases_alone(
    refuse, out, without_force, by_force
):
    refuse(*RELEASE, "--out", out, says=without_force)
    refuse(*RELEASE, "--out", out, "--force", says=by_force)


@pytest.mark.slow
def test_a_zero_byte_in_a_path_is_refused(refuse):
    refuse(*RELEASE, "--out", "a\0b", says="--out")


@pytest.fixture
def mounted(tmp_path):
    """Mounts a small file system in memory; gives its folder."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", f"mode=700,{options}", "tmpfs", str(disk)]
        if not IS_ROOT or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount a small file system")
        return disk

    yield mount
    if disk.is_mount():
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def locked(tmp_path, mounted):
    """A folder that may not be written to."""
    if IS_ROOT:  # whom rights do not stop
        return mounted("ro")
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    return folder


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_is_refused_before_the_table_is_read(locked, refuse):
    refuse(
        "release", "nothing.csv", "--areas", "areas.csv", *BUDGET, "--out", locked / "out",
        says="may not be written to",
    )  # fmt: skip


@pytest.fixture
def small_disk(mounted):
    """A file system of 64 kB."""
    return mounted("size=64k")


def big_flows(place):
    """More than fits on the small disk, whatever the noise: 90,000 cells, all far above it."""
    (place / "areas.csv").write_text("town\n" + "".join(f"{i:03d}\n" for i in range(300)))
    rows = (f"{i:03d},{j:03d},{1000 + 7 * i * j % 1000}\n" for i in range(300) for j in range(300))
    (place / "flows.csv").write_text("origin,destination,count\n" + "".join(rows))


@pytest.mark.slow
def test_a_full_disk_leaves_an_older_release_as_it_was(place, small_disk, capsys):
    assert run([*RELEASE, "--out", str(small_disk / "out"), "--quiet"]) == 0
    before = (small_disk / "out" / "flows.parquet").read_bytes()
    big_flows(place)
    assert run([*RELEASE, "--out", str(small_disk / "out"), "--force"]) == 1
    capsys.readouterr()
    assert (small_disk / "out" / "flows.parquet").read_bytes() == before
    assert run(["verify", str(small_disk / "out")]) == 0
    assert [path.name for path in small_disk.iterdir()] == ["out"]


@pytest.mark.slow
def test_a_ledger_on_a_full_disk_charges_nothing_and_draws_nothing(place, small_disk, capsys):
    ledger = small_disk / "ledger.db"
    assert run(["ledger", "create", str(ledger), "census", "--rho", "1"]) == 0
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="space"):
        filler.write_bytes(bytes(1 << 20))
    capsys.readouterr()
    code = run([*RELEASE, "--out", "out", "--ledger", str(ledger), "--dataset", "census"])
    said = capsys.readouterr()
    assert code == 1, said.err
    assert said.err.count("\n") == 1
    assert not (place / "out").exists()
    filler.unlink()
    assert run(["ledger", "show", str(ledger), "census"]) == 0
    assert "0 releases" in capsys.readouterr().out


@pytest.mark.slow
def test_a_limit_on_file_size_is_the_machines_fault_and_leaves_nothing(place, shell):
    big_flows(place)
    limit = (20_000, 20_000)
    done = shell(
        *RELEASE, "--out", "out",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )  # fmt: skip
    assert done.code == 1, done.err
    assert done.err.count("\n") == 1
    assert "out/flows.parquet" in done.err
    assert "nothing was published and nothing is left on disk; no ledger was charged" in done.err
    assert sorted(path.name for path in place.iterdir()) == ["areas.csv", "flows.csv"]


@pytest.mark.slow
def test_what_cannot_be_read_back_is_not_published(place, capsys, monkeypatch):
    write = folders.write_public_files

    def write_badly(folder, tree, manifest):
        write(folder, tree, manifest)
        (folder / "areas.csv").write_text("region,town\nN,001\n")

    monkeypatch.setattr(publish, "write_public_files", write_badly)
    assert run([*RELEASE, "--out", "out"]) == 2
    assert "areas.csv is not what the manifest was written for" in capsys.readouterr().err
    assert sorted(path.name for path in place.iterdir()) == ["areas.csv", "flows.csv"]
