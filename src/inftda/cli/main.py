"""The command line: arguments to calls to exit codes.

0 is done, 2 is wrong usage or input (one clear message), 1 is anything else.
Heavy libraries are imported by the commands that need them, so that help is instant.
"""

import os
import signal
import sys
import traceback
from contextvars import copy_context
from functools import cache
from types import FrameType
from typing import Annotated, Any

import typer

from inftda import __version__
from inftda.cli import (
    areas,
    compare,
    demo,
    dossier,
    estimate,
    evaluate,
    export,
    keygen,
    ledger,
    output,
    plan,
    preview,
    query,
    release,
    report,
    selftest,
    verify,
)
from inftda.cli.publishing import outcome
from inftda.errors import InftdaError

DONE, FAILED, WRONG_USE = 0, 1, 2
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
#: What newer argument parsers make of Ctrl-C.
_PARSER_INTERRUPTED = 130

app = typer.Typer(
    name="inftda",
    help="Publish origin/destination tables under differential privacy.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("release")(release.command)
app.command("plan")(plan.command)
app.command("preview")(preview.command)
app.command("query")(query.command)
app.command("verify")(verify.command)
app.command("keygen")(keygen.command)
app.command("estimate")(estimate.command)
app.command("evaluate")(evaluate.command)
app.command("compare")(compare.command)
app.command("report")(report.command)
app.command("export")(export.command)
app.command("dossier")(dossier.command)
app.add_typer(areas.app, name="areas")
app.add_typer(ledger.app, name="ledger")
app.command("selftest")(selftest.command)
app.command("demo")(demo.command)
app.add_typer(demo.make, name="make")


def _show_version(value: bool) -> None:  # noqa: FBT001 - the shape typer asks for
    if value:
        output.say(f"inftda {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
) -> None:
    pass


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
    context = copy_context()
    try:
        code = context.run(_parser(), arguments, standalone_mode=False)
    except InftdaError as problem:
        return _complain(str(problem), WRONG_USE)
    except KeyboardInterrupt:
        return _complain(f"interrupted{outcome(context)}", FAILED)
    except OSError as problem:
        where = f" ({problem.filename!r})" if problem.filename else ""
        said = " ".join(f"{problem.strerror or problem}{where}".split())
        if isinstance(problem, _WRONG_PATHS):
            return _complain(f"{said}; check the path", WRONG_USE)
        return _complain(f"{said}{outcome(context)}", FAILED)
    except MemoryError:
        return _complain(f"out of memory{outcome(context)}", FAILED)
    except Exception as problem:  # noqa: BLE001 - the last line of defence: no traceback, no data
        return _unexpected(problem, outcome(context))
    if code == _PARSER_INTERRUPTED:
        return _complain(f"interrupted{outcome(context)}", FAILED)
    return code if isinstance(code, int) else DONE


@cache
def _parser() -> Any:
    """All commands and their options, which take longer to make than most commands to run."""
    return typer.main.get_command(app)


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
    if not _is_compiling(frame):
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
    """Usage errors of the argument parser, and bugs.

    The parser's classes moved between its versions, so they are recognised by their methods.
    A bug's message may hold data, so only its type and line are shown.
    """
    if type(problem).__name__ == "NoArgsIsHelpError":  # its message is the help
        output.say(str(problem.format_message()), err=True)  # type: ignore[attr-defined] # see above
        return WRONG_USE
    if hasattr(problem, "format_message") and hasattr(problem, "exit_code"):
        return _complain(f"{problem.format_message()} (see inftda COMMAND --help)", WRONG_USE)
    if type(problem).__name__ == "Abort":
        return _complain(f"interrupted{published}", FAILED)
    if os.environ.get("INFTDA_DEBUG"):
        traceback.print_exception(problem)
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return _complain(
        f"unexpected {type(problem).__name__} at {last.name}:{last.lineno}{published}. "
        "Please report it (INFTDA_DEBUG=1 shows details, which may be confidential)",
        FAILED,
    )
