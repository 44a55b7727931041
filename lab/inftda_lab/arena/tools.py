"""What is compared: how each tool is called, in which environment, and what to know of it."""

import hashlib
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

import inftda
from inftda_lab.arena.process import CommandError

HERE: Final = Path(__file__).parent
RIVALS: Final = HERE / "rivals"
#: Budget of all tools.
EPSILON: Final = 1
DELTA: Final = Fraction("1e-8")


@dataclass(frozen=True)
class Tool:
    """A tool, or a way to use one.

    Attributes:
        label: for the page.
        commands: programs and arguments, in which names in braces are replaced by paths;
            they are run one after another, and their costs added up.
        about: what it does, in which units its budget is, whether fits converge.
        package: name of its requirements; the others run in this environment.
        is_ours: whether it is this project's own.
    """

    label: str
    commands: tuple[tuple[str, ...], ...]
    about: str
    package: str | None = None
    is_ours: bool = False

    @property
    def version(self) -> str:
        """Version of the package, or nothing for a mechanism of a few lines."""
        if self.package is not None:
            return _pinned(self.package)
        return inftda.__version__ if self.is_ours else ""


def _release(*options: str) -> tuple[str, ...]:
    given = ("--areas", "{input}/areas.csv", "--epsilon", str(EPSILON), "--out", "{made}/release")
    command = ("{python}", "-m", "inftda", "release", "{input}/flows.parquet", *given, "--quiet")
    return (*command, *(options if "--delta" in options else (*options, "--delta", "1e-8")))


def _estimate(*options: str) -> tuple[str, ...]:
    command = ("{python}", "-m", "inftda", "estimate", "{made}/release", "--quiet")
    return (*command, "--out", "{made}/estimate", *options)


def _rival(script: str, *options: str) -> tuple[tuple[str, ...], ...]:
    return (("{python}", str(RIVALS / script), "{input}", "{out}", *options),)


def _baseline(name: str) -> tuple[tuple[str, ...], ...]:
    return (("{python}", "-m", "inftda_lab.arena.baseline", name, "{input}", "{out}"),)


_CENTROIDS: Final = ("--centroids", "{table}/centroids.csv")
TOOLS: Final[dict[str, Tool]] = {
    "inftda": Tool("inftda", (_release(),), "As it comes.", is_ours=True),
    "inftda-pairs": Tool(
        "inftda, --split pairs",
        (_release("--split", "pairs"),),
        "More of the budget for the finest level.",
        is_ours=True,
    ),
    "inftda-paper": Tool(
        "inftda, --method paper",
        (_release("--method", "paper"),),
        "The published algorithm, with the tightest valid accountant.",
        is_ours=True,
    ),
    "inftda-pure": Tool(
        "inftda, --delta 0",
        (_release("--delta", "0"),),
        "Pure epsilon, a stronger guarantee than that of the others.",
        is_ours=True,
    ),
    "inftda-estimate": Tool(
        "inftda estimate",
        (_release(), _estimate()),
        "A model of the default release; time and memory include the release.",
        is_ours=True,
    ),
    "inftda-estimate-places": Tool(
        "inftda estimate, centroids",
        (_release(), _estimate(*_CENTROIDS)),
        "The same with the places of areas, where the table has them.",
        is_ours=True,
    ),
    "inftda-estimate-pairs": Tool(
        "inftda estimate, --split pairs",
        (_release("--split", "pairs"), _estimate()),
        "A model of the release with `--split pairs`.",
        is_ours=True,
    ),
    "inf-tda": Tool(
        "inf-tda",
        _rival("run_inf_tda.py"),
        "The package of the paper's authors: `inf_tda(table, (1, 1e-8), 1, 'bounded', True)`. "
        "Bounded is substitution, so nothing is converted.",
        "inf-tda",
    ),
    "mbi": Tool(
        "mbi",
        _rival("run_mbi.py"),
        "private-pgm: Gaussian noise on every level, of the standard deviation that "
        "`--method paper` has; the public total; fitted by mirror descent from a warm start, with "
        "64 bits. It stops when a thousand steps gain less than a millionth, or after four fifths "
        "of the time limit. Real numbers, as they come.",
        "mbi",
    ),
    "opendp": Tool(
        "opendp with mbi",
        _rival("run_opendp.py", "0"),
        "A contingency table of all pairs, `Fixed([Count((origin, destination))])`, with the steps "
        "that it takes by itself: 1,000, which do not converge. Add-remove of one row with half "
        "of rho, which is exactly substitution for Gaussian counts.",
        "opendp",
    ),
    "opendp-long": Tool(
        "opendp with mbi, 20,000 steps",
        _rival("run_opendp.py", "20000"),
        "The same with 20 times the steps; whether they converge was not checked.",
        "opendp",
    ),
    "tmlt.analytics": Tool(
        "tmlt.analytics",
        _rival("run_tmlt.py"),
        "A count by groups for each level of the tree, all keys public, equal parts. Add-remove of "
        "one row with half of rho, which is exactly substitution for Gaussian counts. Spark on "
        "this machine, which is not what it is for.",
        "tmlt",
    ),
    "pipeline-dp": Tool(
        "pipeline-dp",
        _rival("run_pipeline_dp.py"),
        "People by pair, Laplace noise and thresholding, on one machine. Add-remove of one person "
        "at half of epsilon and the delta that makes two such steps one of (1, 1e-8): exact for "
        "Laplace noise.",
        "pipeline-dp",
    ),
    "flat-laplace": Tool(
        "flat Laplace, threshold",
        _baseline("flat-laplace"),
        "Discrete Laplace noise of scale 2 on every pair, values below 10 dropped: five lines of "
        "code, pure epsilon. The threshold was set before.",
    ),
    "stability-histogram": Tool(
        "stability histogram",
        _baseline("stability-histogram"),
        "Laplace noise on pairs that occur, values up to 39 dropped.",
    ),
    "vanilla-gauss": Tool(
        "VanillaGauss",
        _baseline("vanilla-gauss"),
        "Gaussian noise on every pair; negative numbers are kept.",
    ),
    "least-squares": Tool(
        "least squares, two passes",
        _baseline("least-squares"),
        "Every cell of every level measured with the noise of `--cross-tables 0`, and fitted as "
        "BlueDown fits the US census: the best linear estimate from below on the way up, the "
        "nearest whole numbers from 0 up that keep each total on the way down. BlueDown's many "
        "counts at each node and its constraints are left out.",
    ),
}


def python_of(tool: Tool, folder: Path) -> Path:
    """The Python of a tool; its environment is set up if it is not there.

    Args:
        tool: the tool.
        folder: where environments are kept.

    Raises:
        CommandError: it cannot be installed here.
    """
    if tool.package is None:
        return Path(sys.executable)
    pinned = RIVALS / f"{tool.package}.txt"
    digest = hashlib.sha256(pinned.read_bytes()).hexdigest()[:12]
    environment = folder / f"{tool.package}-{digest}"
    python, done = environment / "bin" / "python", environment / "installed"
    if not done.exists():
        venv.create(environment, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        made = subprocess.run(  # noqa: S603 - our own requirements
            [*pip, "--requirement", str(pinned)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            lines = made.stderr.strip().splitlines() or ["pip failed"]
            raise CommandError(f"cannot be installed: {lines[-1][:200]}")
        done.touch()
    return python


def _pinned(package: str) -> str:
    """Version of a package in its own requirements."""
    names = {"tmlt": "tmlt.analytics"}
    wanted = names.get(package, package).replace("-", "_")
    for line in (RIVALS / f"{package}.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if name.replace("-", "_") == wanted:
            return version
    raise AssertionError(package)


def filled(command: tuple[str, ...], places: Mapping[str, Path]) -> list[str]:
    """A command with its folders and files."""
    return [part.format(**places) for part in command]
