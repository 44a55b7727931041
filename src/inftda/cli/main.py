"""The command line: from arguments to function calls and exit codes.

0 is done, 2 is wrong usage or input (one clear message), 1 is anything else, such as a release that
this version cannot verify completely.
The module of a command is loaded when the command is used, so that help is instant.
"""

import os
import signal
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from types import FrameType
from typing import Any

import click

from inftda import __version__
from inftda.cli import output
from inftda.errors import InftdaError, UncheckedError
from inftda.util.screen import printable

DONE, FAILED, WRONG_USE = 0, 1, 2
#: Commands that publish, and the message if one fails before its release has begun.
_PUBLISHING = {"release", "demo"}
_NOT_BEGUN = "nothing was published and no ledger was charged"
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
    """Commands that are loaded when they are used: name to module, name there, and help."""

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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; if there is none of that name, suggest one that is spelled alike."""
        name = args[0]
        if name not in self._homes and not name.startswith("-"):
            near = get_close_matches(name, self._homes, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List them without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([
                (name, str(home.help) if isinstance(home, click.Group) else home[2])
                for name, home in self._homes.items()
            ])  # fmt: skip


_AREAS = _Commands("areas", "Make public areas: cells that cover an outline.", {
    "h3": ("decide", "h3", "Hexagonal cells of H3 that cover an outline."),
    "grid": ("decide", "grid", "Square cells that cover an outline."),
})  # fmt: skip
_LEDGER = _Commands("ledger", "Keep privacy budgets of data sets.", {
    "create": ("ledgers", "create", "Give a data set a privacy budget."),
    "list": ("ledgers", "list_", "List data sets with used and remaining budget."),
    "show": ("ledgers", "show", "Show a data set: its privacy unit, budget and releases."),
    "charge": ("ledgers", "charge", "Charge a publication made by other means."),
})  # fmt: skip
app = _Commands(
    "inftda",
    "Publish origin/destination tables under differential privacy.",
    {
        "release": ("publish", "release", "Publish a confidential table."),
        "plan": ("decide", "plan", "State guarantee and errors of a release to come."),
        "preview": ("decide", "preview", "Simulate releases of a public table."),
        "app": ("publish", "app", "Work in a browser on this machine, step by step."),
        "query": ("read", "query", "Sum up the flows of a release by areas of any level."),
        "change": ("read", "change", "Compare two editions of a table."),
        "verify": ("read", "verify", "Check a release without trusting its publisher."),
        "keygen": ("read", "keygen", "Make a key pair to sign releases with."),
        "estimate": ("share", "estimate", "Model-based estimates of all flows."),
        "report": ("share", "report", "Write a page for readers, to open in any browser."),
        "export": ("share", "export", "Write files for spreadsheets, maps, GIS, models or R."),
        "dossier": ("share", "dossier", "Write a registry entry and a summary for reviewers."),
        "evaluate": ("confidential", "evaluate", "Compare a release with the truth. CONFIDENTIAL."),
        "compare": ("confidential", "compare", "Compare methods on the true counts. CONFIDENTIAL."),
        "areas": _AREAS,
        "ledger": _LEDGER,
        "selftest": ("share", "selftest", "Check the installed build."),
        "demo": ("publish", "demo", "Make up a table, release it, and look at the result."),
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
    is_publishing = bool(_PUBLISHING & {*arguments[:1]})
    try:
        code = app.main(arguments, prog_name="inftda", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as problem:  # its message is the help
        output.say(problem.format_message(), err=True)
        return WRONG_USE
    except click.ClickException as problem:
        context = getattr(problem, "ctx", None)
        about = f" (see {context.command_path} --help)" if context else ""
        return _complain(f"{problem.format_message()}{about}", WRONG_USE)
    except UncheckedError as problem:  # nothing is wrong with what was given
        return _complain(str(problem), FAILED)
    except InftdaError as problem:
        return _complain(f"{problem}{_notes(problem)}", WRONG_USE)
    except _WRONG_PATHS as problem:
        return _complain(f"{_said(problem)}; check the path{_notes(problem)}", WRONG_USE)
    except (KeyboardInterrupt, click.Abort) as problem:
        # The parser turns an interrupt into an `Abort`.
        cause = problem.__cause__ or problem
        return _complain(f"interrupted{_notes(cause, is_publishing)}", FAILED)
    except OSError as problem:
        return _complain(f"{_said(problem)}{_notes(problem, is_publishing)}", FAILED)
    except MemoryError as problem:
        return _complain(f"out of memory{_notes(problem, is_publishing)}", FAILED)
    except Exception as problem:  # noqa: BLE001 - the last line of defence: no traceback, no data
        return _unexpected(problem, is_publishing)
    return code if isinstance(code, int) else DONE


def _said(problem: OSError) -> str:
    where = f" ({problem.filename!r})" if problem.filename else ""
    return " ".join(f"{problem.strerror or problem}{where}".split())


def _notes(problem: BaseException, is_publishing: bool = False) -> str:  # noqa: FBT001, FBT002
    """Notes of a release on the exception: what was published, charged and left on disk."""
    notes = list(getattr(problem, "__notes__", ()))
    if is_publishing and not notes:
        notes.append(_NOT_BEGUN)
    return "".join(f"; {note}" for note in notes)


def _forbid_core_dumps() -> None:
    """A crash must not write memory, which may hold the truth, to disk."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def _interrupt(_number: int, frame: FrameType | None) -> None:
    """Stop, but not inside the compiler.

    Of 20 compilations that were interrupted at once, 4 lost the interrupt, as it fell into a
    callback of LLVM, and one kept the lock of the compiler, so that all other threads hung.
    """
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
    output.say(f"error: {printable(message)}", err=True)
    return code


def _unexpected(problem: Exception, is_publishing: bool) -> int:  # noqa: FBT001
    """A bug. Its message may hold data, so only its type and line are shown."""
    if os.environ.get("INFTDA_DEBUG"):
        traceback.print_exception(problem)
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return _complain(
        f"unexpected {type(problem).__name__} at {last.name}:{last.lineno}"
        f"{_notes(problem, is_publishing)}. "
        "Please report it (INFTDA_DEBUG=1 shows details, which may be confidential)",
        FAILED,
    )
