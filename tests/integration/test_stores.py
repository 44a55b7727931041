"""Tables, areas and releases in a store (a real S3 server on loopback), and by HTTPS."""

import datetime as dt
import gzip
import ssl
import tempfile
import threading
import traceback
import zipfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pyarrow import fs
from s3_server import KEY, SECRET, Wire, s3_server

import inftda
from inftda.cli.main import run
from inftda.errors import InftdaError, IngestError, ReleaseError
from inftda.util import stores

pytestmark = pytest.mark.slow

AREAS = "region,town\nN,001\nN,002\nS,003\n"
FLOWS = "origin,destination,count\n001,002,30\n003,001,50\n"
BUDGET = {"epsilon": 1, "delta": 1e-6}
HOME = "s3://mobility"


@pytest.fixture(scope="module")
def server():
    if find_spec("moto") is None:
        pytest.skip("NO S3 SERVER HERE: install the extra `dev` to run these tests")
    with s3_server() as port:
        yield port


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, with good flows and areas; what is temporary is in its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "areas.csv").write_text(AREAS)
    (tmp_path / "flows.csv").write_text(FLOWS)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


@pytest.fixture
def bucket(server, place, monkeypatch):  # noqa: ARG001 - credentials are there
    """An empty bucket `mobility`, as a file system of Arrow."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server}")
    files = fs.S3FileSystem(
        endpoint_override=f"http://127.0.0.1:{server}", allow_bucket_creation=True
    )
    files.create_dir("mobility")
    files.delete_dir_contents("mobility")
    return fs.SubTreeFileSystem("mobility", files)


def put(bucket, name, content):
    with bucket.open_output_stream(name, compression=None) as out:
        out.write(content.encode() if isinstance(content, str) else content)


def names(bucket, folder):
    found = bucket.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
    return sorted(one.base_name for one in found)


def made(flows, areas="areas.csv", **options):
    """The flows of a seeded release."""
    source = inftda.SeededSource(1)
    return inftda.release(flows, areas, **BUDGET, source=source, **options).flows().to_pylist()


def no_copy_is_left(place):
    return [path.name for path in (place / "scratch").iterdir()] == []


def test_tables_of_every_kind_and_areas_are_read_as_from_disk(bucket, place):
    pq.write_table(pa.table({"destination": ["002"], "count": [30]}), place / "a.parquet")
    pq.write_table(pa.table({"destination": ["001"], "count": [50]}), place / "b.parquet")
    with zipfile.ZipFile(place / "flows.zip", "w") as packed:
        packed.write(place / "flows.csv", "flows.csv")
    book = openpyxl.Workbook()
    for row in ([None, "001", "002"], ["001", None, 30], ["003", 50, None]):
        book.active.append(row)
    book.save(place / "matrix.xlsx")
    put(bucket, "odd name/flows.csv", FLOWS)
    put(bucket, "flows.csv.gz", gzip.compress(FLOWS.encode()))
    put(bucket, "flows.zip", (place / "flows.zip").read_bytes())
    put(bucket, "matrix.xlsx", (place / "matrix.xlsx").read_bytes())
    put(bucket, "parts/origin=001/a.parquet", (place / "a.parquet").read_bytes())
    put(bucket, "parts/origin=003/b.parquet", (place / "b.parquet").read_bytes())
    put(bucket, "parts/_SUCCESS", "")
    put(bucket, "days/1/a.csv", FLOWS.replace("50", "20"))
    put(bucket, "days/2/a.csv", "origin,destination,count\n003,001,30\n")
    put(bucket, "days/2/b.csv", "another,table\n")
    put(bucket, "areas.csv", AREAS)
    expected = made("flows.csv")
    for flows in (
        f"{HOME}/odd name/flows.csv",
        f"{HOME}/flows.csv.gz",
        f"{HOME}/flows.zip",
        f"{HOME}/parts",
        f"{HOME}/days/*/a.csv",
        inftda.TableFile(f"{HOME}/matrix.xlsx", matrix=True),
    ):
        assert made(flows, f"{HOME}/areas.csv") == expected
    assert no_copy_is_left(place)


def test_a_release_goes_to_a_store_and_is_verified_and_read_there(bucket, place, capsys):
    options = ("--areas", "areas.csv", "--epsilon", "1", "--delta", "1e-6")
    assert run(["release", "flows.csv", *options, "--out", f"{HOME}/2026/release"]) == 0
    assert f"inftda verify {HOME}/2026/release\n" in capsys.readouterr().out
    assert run(["verify", f"{HOME}/2026/release"]) == 0
    opened = inftda.open_release(f"{HOME}/2026/release")
    opened.save(place / "copy")
    assert inftda.verify(place / "copy")
    again = inftda.open_release(place / "copy").save(f"{HOME}/again")
    assert again.flows() == opened.flows()
    there = names(bucket, "again")
    assert there == sorted(path.name for path in (place / "copy").iterdir())
    assert no_copy_is_left(place)
    # It is replaced on demand, and nothing else is.
    refused = run(["release", "flows.csv", *options, "--out", f"{HOME}/again"])
    assert (refused, "exists already" in capsys.readouterr().err) == (2, True)
    assert run(["release", "flows.csv", *options, "--out", f"{HOME}/again", "--force"]) == 0
    assert inftda.verify(f"{HOME}/again")
    put(bucket, "again/notes.txt", "mine")
    assert run(["release", "flows.csv", *options, "--out", f"{HOME}/again", "--force"]) == 2
    assert "'notes.txt' in it is not part of a release" in capsys.readouterr().err
    assert names(bucket, "again") == sorted([*there, "notes.txt"])
    with pytest.raises(ReleaseError, match="is not part of the release"):
        inftda.verify(f"{HOME}/again")


def test_of_a_release_in_a_store_only_its_own_files_are_copied(bucket, place, monkeypatch):
    inftda.release("flows.csv", "areas.csv", **BUDGET, out=f"{HOME}/mixed")
    copied = []
    fetch = stores._Store._fetch
    monkeypatch.setattr(
        stores._Store, "_fetch",
        lambda store, one, copy: copied.append(copy.name) or fetch(store, one, copy),
    )  # fmt: skip
    for name in ("huge.bin", "below/flows.parquet", ".DS_Store"):
        put(bucket, f"mixed/{name}", "x" * 1000)
    inftda.open_release(f"{HOME}/mixed")
    with pytest.raises(ReleaseError, match=r"'below/flows.parquet' in .* is not part of"):
        inftda.verify(f"{HOME}/mixed")
    assert {*copied} == {"areas.csv", "flows.parquet", "manifest.json", "measurements.parquet"}
    for name in ("huge.bin", "below/flows.parquet"):
        bucket.delete_file(f"mixed/{name}")
    found = inftda.verify(f"{HOME}/mixed")
    assert "no unexpected files in the folder except .DS_Store, which was not read" in found
    assert no_copy_is_left(place)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("part", "is_there"), [(0.3, False), (0.6, True), (0.9, False), (0.9, True)]
)
def test_an_upload_that_is_cut_off_leaves_no_release(bucket, server, monkeypatch, part, is_there):
    """Neither where nothing was nor where a whole release was; and the new one is not lost."""

    def send(most=None):
        wire = Wire(server, most)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{wire.port}")
        try:
            inftda.release("flows.csv", "areas.csv", **BUDGET, out=f"{HOME}/out", force=True)
        finally:
            wire.close()
            monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server}")
        return wire.sent

    n_bytes = send()
    assert inftda.verify(f"{HOME}/out")
    if is_there:
        n_bytes = send()
    else:
        bucket.delete_dir("out")
    with pytest.raises(ReleaseError, match=r"manifest.json. The release is kept in") as error:
        send(int(part * n_bytes))
    assert "manifest.json" not in names(bucket, "out")
    for look in (inftda.open_release, inftda.verify):
        with pytest.raises(ReleaseError, match=r"has no manifest.json|there is no file"):
            look(f"{HOME}/out")
    [kept] = Path(tempfile.gettempdir()).glob("inftda-kept-*/out")
    assert str(kept) in str(error.value)
    assert inftda.verify(kept)
    send()
    assert inftda.verify(f"{HOME}/out")


@pytest.mark.parametrize(
    ("moment", "is_sent"),
    [
        ("util.stores._Store.send", False),
        ("pipeline._opened", None),
        ("cli.publish.release_summary", True),
    ],
)
def test_an_interrupt_says_whether_the_release_is_in_the_store(
    bucket, capsys, monkeypatch, moment, is_sent
):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    options = ("--areas", "areas.csv", "--epsilon", "1", "--delta", "1e-6")
    with monkeypatch.context() as patch:
        patch.setattr(f"inftda.{moment}", interrupt)
        assert run(["release", "flows.csv", *options, "--out", f"{HOME}/out"]) == 1
    said = capsys.readouterr().err
    assert ("nothing was published" in said) == (is_sent is None)
    assert (f"the release in '{HOME}/out' is complete and in place" in said) == (is_sent is True)
    kept = list(Path(tempfile.gettempdir()).glob("inftda-kept-*/out"))
    assert bool(kept) == (is_sent is False)
    for folder in kept:
        assert f"The release is kept in {str(folder)!r}: send it from there" in said
        assert inftda.verify(folder)
    assert ("manifest.json" in names(bucket, "out")) == (is_sent is True)


def refuse(capsys, *arguments, says):
    """A command fails with one clear line, without anything secret in it."""
    assert run(["release", *arguments, "--epsilon", "1", "--delta", "1e-6", "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert says in said
    assert "Zq7" not in said
    assert "Sesame" not in said


ADDRESSES = {
    f"{HOME}/nothing.csv": "there is no file",
    f"{HOME}/no*.csv": "there is no file",
    f"{HOME}/empty": "there is no file",
    f"{HOME}/empty/readme.md": "unknown ending",
    "s3://nowhere/flows.csv": "there is no file",
    "s3://": "starts with a bucket",
    f"s3://{KEY}:{SECRET}@mobility/flows.csv": "credentials and settings come from",
    f"{HOME}/flows.csv?secret_key={SECRET}": "credentials and settings come from",
    "ftp://example.org/flows.csv": "addresses that start with ftp:// are not known",
    "hdfs://example.org/flows.csv": "let Spark read Parquet files",
    "http://example.org/flows.csv": "addresses that start with http:// are not known",
    f"https://127.0.0.1:1/flows.csv?signature={SECRET}": "it cannot be reached",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_without_a_table_is_refused(bucket, place, capsys, address):
    put(bucket, "empty/readme.md", "nothing")
    says = ADDRESSES[address]
    refuse(capsys, address, "--areas", "areas.csv", "--out", "out", says=says)
    if "*" not in address and "empty" not in address:
        refuse(capsys, "flows.csv", "--areas", address, "--out", "out", says=says)
    assert no_copy_is_left(place)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("s3://nowhere/out", "there is no bucket"),
        (HOME, "no folder of a bucket"),
        ("https://example.org/out", "no folders"),
        ("ftp://example.org/out", "not known"),
        (f"s3://{KEY}:{SECRET}@mobility/out", "credentials and settings come from"),
    ],
)
@pytest.mark.usefixtures("bucket")
def test_a_folder_that_cannot_be_written_is_refused_before_noise_is_drawn(place, capsys, out, says):
    assert run(["ledger", "create", "ledger.db", "trips", "--rho", "1", "--delta", "1e-6"]) == 0
    paid = (place / "ledger.db").read_bytes()
    ledger = ("--ledger", "ledger.db", "--dataset", "trips")
    capsys.readouterr()
    refuse(capsys, "flows.csv", "--areas", "areas.csv", *ledger, "--out", out, says=says)
    assert (place / "ledger.db").read_bytes() == paid
    assert no_copy_is_left(place)


@pytest.mark.nightly
@pytest.mark.usefixtures("server")
def test_wrong_credentials_and_a_store_that_is_away_are_one_clear_error(place, monkeypatch, capsys):
    areas = ("--areas", "areas.csv")
    # From the first request on, this server wants a user that it knows.
    with s3_server(INITIAL_NO_AUTH_ACTION_COUNT="0") as strict:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{strict}")
        for arguments in ([f"{HOME}/flows.csv", *areas, "--out", "out"],
                          ["flows.csv", *areas, "--out", f"{HOME}/out"]):  # fmt: skip
            refuse(capsys, *arguments, says="access is denied; check the credentials")
    refuse(capsys, f"{HOME}/flows.csv", *areas, "--out", "out", says="it cannot be reached")
    assert no_copy_is_left(place)


# --- HTTPS


@pytest.fixture
def website(place, monkeypatch):
    """Address of a server with a certificate that this process trusts."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "inftda test")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (place / "server.pem").write_bytes(private + certificate.public_bytes(pem))
    (place / "trusted.pem").write_bytes(certificate.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "server.pem")

    class Site(BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.partition("?")[0]
            codes = {"/denied.csv": 403, "/elsewhere.csv": 302, "/nothing.csv": 404}
            self.send_response(codes.get(name, 200))
            if name == "/elsewhere.csv":
                self.send_header("Location", f"http://127.0.0.1:{plain.server_port}/flows.csv")
            content = (AREAS if "areas" in name else FLOWS).encode()
            self.send_header("Content-Length", str(len(content) + 9 * (name == "/cut.csv")))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Log no request."""

    plain = HTTPServer(("127.0.0.1", 0), Site)
    site = HTTPServer(("127.0.0.1", 0), Site)
    site.socket = context.wrap_socket(site.socket, server_side=True)
    for one in (plain, site):
        threading.Thread(target=one.serve_forever, daemon=True).start()
    monkeypatch.setenv("SSL_CERT_FILE", str(place / "trusted.pem"))
    yield f"https://127.0.0.1:{site.server_port}"
    for one in (plain, site):
        one.shutdown()
        one.server_close()


def test_a_table_and_areas_are_read_by_https(website, place):
    address = f"{website}/flows.csv?signature={SECRET}"
    assert made(address, f"{website}/areas.csv") == made("flows.csv")
    assert no_copy_is_left(place)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("denied.csv", "access is denied"),
        ("nothing.csv", "it is not there"),
        ("cut.csv", "it was cut off"),
        ("elsewhere.csv", "without encryption"),
        ("flows", "unknown ending"),
    ],
)
def test_a_download_that_fails_is_one_clear_error_without_its_signature(website, place, name, says):
    with pytest.raises(IngestError, match=says) as error:
        made(f"{website}/{name}?signature={SECRET}")
    assert SECRET not in "".join(traceback.format_exception_only(error.value))
    assert no_copy_is_left(place)


def test_a_server_that_nobody_vouches_for_is_refused(website, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(InftdaError, match="it cannot be reached"):
        made(f"{website}/flows.csv")
