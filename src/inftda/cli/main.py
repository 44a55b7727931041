"""The command line: arguments to calls to exit codes.

0 is done, 2 is wrong usage or input (one clear message), 1 is anything else.
The module of a command is loaded when the command is used, so that help is instant.
"""

import os
import signal
import sys
import traceback
from collections.abc import Mapping
from importlib import import_module
from types import FrameType
from typing import Any

import click

from inftda import __version__
from inftda.cli import output
from inftda.errors import InftdaError

DONE, FAILED, WRONG_USE = 0, 1, 2
#: Commands that publish: if one fails, it is said that nothing was published.
_PUBLISHING = {"release", "demo"}
#: Variables that switch off the huge pages that numpy and Arrow ask for. A virtual machine may
#: have given its free memory back and gets it again piece by piece: each page then takes
#: milliseconds, and a country's trips have a thousand of them. With small pages reading the census
#: sections takes half the time. The second one switches them off for the whole process, and for
#: those that it starts.
_HUGE_PAGES = ("NUMPY_MADVISE_HUGEPAGE", "MIMALLOC_ALLOW_THP")
#: Errors of the system that are due to a wrong path; all others are the machine's.
_WRONG_PATHS = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
#: Libraries that load and compile kernels, and seconds until they are looked at again.
_COMPILER, _MOMENT = ("numba", "llvmlite"), 0.05


class _Commands(click.Group):
    """Commands that are loaded when they are used.

    Args:
        name: of the group.
        about: what it is for.
        commands: name to module, name there, and what it does.
    """

    def __init__(self, name: str, about: str, commands: Mapping[str, Any], **more: Any) -> None:
        super().__init__(name, help=about, no_args_is_help=True, **more)
        self._homes = commands

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the parser's shape
        """Names in the order of help."""
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Load one."""
        home = self._homes.get(cmd_name)
        if home is None or isinstance(home, click.Group):
            return home
        found: click.Command = getattr(import_module(f"inftda.cli.{home[0]}"), home[1])
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List them without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([
                (name, str(home.help) if isinstance(home, click.Group) else home[2])
                for name, home in self._homes.items()
            ])  # fmt: skip


_AREAS = _Commands("areas", "Public areas to count trips by: make cells, see what areas cost.", {
    "h3": ("decide", "h3", "Hexagonal cells of H3 that cover an outline."),
    "grid": ("decide", "grid", "Square cells that cover an outline."),
    "show": ("decide", "show_areas", "Levels of areas, and the noise of trips between them."),
})  # fmt: skip
_LEDGER = _Commands("ledger", "Budgets of data sets, and what releases have spent of them.", {
    "create": ("ledger", "create", "Give a data set a budget for one unit of privacy."),
    "list": ("ledger", "list_", "All data sets with what is spent and what is left."),
    "show": ("ledger", "show", "One data set: its unit, its budget, and its releases."),
    "export": ("ledger", "export", "Every entry of the ledger, amounts as exact fractions."),
    "charge": ("ledger", "charge", "Charge what was released by other means."),
})  # fmt: skip
_MAKE = _Commands("make", "Make a table to try things out with.", {
    "country": ("release", "country", "A made-up country: its areas, and trips between them."),
})  # fmt: skip
app = _Commands(
    "inftda",
    "Publish origin/destination tables under differential privacy.",
    {
        "release": ("release", "release", "Publish a confidential table."),
        "plan": ("decide", "plan", "Noise and guaranteed errors. Needs no data, spends nothing."),
        "preview": ("decide", "preview", "Try settings out on something public."),
        "query": ("read", "query", "Flows of a release between areas of any levels."),
        "change": ("read", "change", "What changed between two editions of a table."),
        "verify": ("read", "verify", "Check a release without trusting who made it."),
        "keygen": ("read", "keygen", "Make a key to sign releases with."),
        "estimate": ("share", "estimate", "The best guess at every flow of a release."),
        "report": ("share", "report", "Write a page that anyone can open."),
        "export": ("share", "export", "Files for spreadsheets, maps, GIS, transport models or R."),
        "dossier": ("share", "dossier", "Registry entry and summary for reviewers."),
        "evaluate": ("confidential", "evaluate", "Compare a release with the truth. CONFIDENTIAL."),
        "compare": ("confidential", "compare", "Compare with what offices do. CONFIDENTIAL."),
        "areas": _AREAS,
        "ledger": _LEDGER,
        "selftest": ("share", "selftest", "Check the installed build."),
        "demo": ("release", "demo", "Make a small country, release its trips, look at the result."),
        "make": _MAKE,
    },
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=lambda context, _, value: _show_version(context) if value else None,
            help="Show the version.",
        )
    ],
)


def _show_version(context: click.Context) -> None:
    output.say(f"inftda {__version__}")
    context.exit()


def main() -> None:
    """Run the command line and leave with its exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    _forbid_core_dumps()
    for name in _HUGE_PAGES:
        os.environ.setdefault(name, "0")
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one way out for each kind of end
    """Run one command; returns the exit code and never raises."""
    published = "; nothing was published" if _PUBLISHING & {*arguments[:1]} else ""
    try:
        code = app.main(arguments, prog_name="inftda", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as problem:  # its message is the help
        output.say(problem.format_message(), err=True)
        return WRONG_USE
    except click.ClickException as problem:
        return _complain(f"{problem.format_message()} (see inftda COMMAND --help)", WRONG_USE)
    except InftdaError as problem:
        return _complain(str(problem), WRONG_USE)
    except (KeyboardInterrupt, click.Abort):
        return _complain(f"interrupted{published}", FAILED)
    except OSError as problem:
        where = f" ({problem.filename!r})" if problem.filename else ""
        said = " ".join(f"{problem.strerror or problem}{where}".split())
        if isinstance(problem, _WRONG_PATHS):
            return _complain(f"{said}; check the path", WRONG_USE)
        return _complain(f"{said}{published}", FAILED)
    except MemoryError:
        return _complain(f"out of memory{published}", FAILED)
    except Exception as problem:  # noqa: BLE001 - the last line of defence: no traceback, no data
        return _unexpected(problem, published)
    return code if isinstance(code, int) else DONE


def _forbid_core_dumps() -> None:
    """A crash must not write memory, which may hold the truth, to disk."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Stop, but not inside the compiler, which would crash, keep a lock, or lose the interrupt."""
    if not _is_compiling(frame) or not hasattr(signal, "setitimer"):  # Windows has no timers
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _MOMENT)  # and ask again


def _is_compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in _COMPILER:
            return True
        frame = frame.f_back
    return False


def _complain(message: str, code: int) -> int:
    output.say(f"error: {output.printable(message)}", err=True)
    return code


def _unexpected(problem: Exception, published: str) -> int:
    """A bug. Its message may hold data, so only its type and line are shown."""
    if os.environ.get("INFTDA_DEBUG"):
        traceback.print_exception(problem)
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return _complain(
        f"unexpected {type(problem).__name__} at {last.name}:{last.lineno}{published}. "
        "Please report it (INFTDA_DEBUG=1 shows details, which may be confidential)",
        FAILED,
    )
