"""From a Python function to a command: its options, help, configuration, and the call.

The parameters of the function carry their options (`inftda.options`). Only given options
are passed on, so defaults stand in Python alone.
"""

import inspect
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click

from inftda.arguments import NUMBERS, Parameter, as_given, parameters_of, read_configuration, values
from inftda.cli.output import say
from inftda.errors import InftdaError
from inftda.options import AREAS, GUARANTEE, RUN, TABLE, Option, current_name
from inftda.util.screen import metered

_PANELS: Final = (None, TABLE, AREAS, GUARANTEE, RUN)
_CONFIG: Final = Option(
    "TOML file of options; those below [COMMAND] are for one command. The command line wins.",
    metavar="FILE",
)


class Call:
    """The Python function of a command, with its given arguments."""

    def __init__(self, function: Callable[..., Any], given: dict[str, Any]) -> None:
        self.given, self._function = given, function

    def __call__(self, *arguments: Any, **more: Any) -> Any:
        """Call it.

        Raises:
            InftdaError: something that it needs was not given.
        """
        parameters = list(inspect.signature(self._function).parameters.values())
        known = {*self.given, *more, *(one.name for one in parameters[: len(arguments)])}
        missing = [
            one.name for one in parameters if one.default is one.empty and one.name not in known
        ]
        if missing:
            spelled = [
                one.metavar if one.option.is_argument else one.flag
                for one in parameters_of(self._function)
                if one.name in missing
            ]
            raise InftdaError(f"give {' and '.join(spelled)}")
        return self._function(*arguments, **self.given, **more)

    def with_progress(self, unit: str, *, quiet: bool, json: bool, **more: Any) -> Any:
        """Call it and show its progress, and report if kernels are compiled meanwhile."""
        with (
            announced_compilation(shown=not quiet),
            metered(unit, shown=not (quiet or json)) as progress,
        ):
            return self(progress=progress, **more)


@contextmanager
def announced_compilation(*, shown: bool = True) -> Iterator[None]:
    """Report on standard error, once, if kernels are compiled in the block: it takes time."""
    if not shown:
        yield
        return
    from inftda.util import kernels  # noqa: PLC0415 - numba, which commands that read do not need

    with kernels.when_compiling(lambda words: click.echo(words, err=True)):
        yield


def _as_click(one: Parameter) -> click.Parameter:
    """An option as the parser of the command line takes it."""
    common: dict[str, Any] = {
        "metavar": one.option.metavar,
        "type": str if one.is_text else NUMBERS.get(one.kind, one.kind),
    }
    if one.option.is_argument:
        if one.default is not inspect.Parameter.empty:
            common["metavar"] = f"[{one.option.metavar}]"
        place: Any = click.Argument([one.name], required=False, **common)
        place.meaning = _help(one)
        return place  # type: ignore[no-any-return] # a click.Argument with help
    if one.is_flag:
        spelled = one.option.spelling or one.flag
        made: Any = click.Option([one.name, spelled], help=_help(one), default=None, is_flag=True)
    else:
        common["metavar"] = one.metavar
        made = click.Option(
            [one.name, one.flag], help=_help(one), multiple=one.option.is_repeated, **common
        )
    made.panel = one.option.panel
    return made  # type: ignore[no-any-return] # a click.Option with a panel


def _help(one: Parameter) -> str:
    notes = ["may be repeated"] if one.option.is_repeated else []
    if one.is_several and one.kind is not bool:
        notes.append("several by comma")
    if isinstance(one.default, str | int | float) and not isinstance(one.default, bool):
        shown = one.default != "" and "default" not in one.meaning
        notes += [f"default: {one.default}"] if shown else []
    elif isinstance(one.default, tuple) and one.default:
        notes.append(f"default: {','.join(map(str, one.default))}")
    return f"{one.meaning}  [{'; '.join(notes)}]" if notes else one.meaning


class Command(click.Command):
    """A command with help in panels, whose options may be given once each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option that takes one value is given twice.
        """
        known = {str(one.name) for one in self.params}
        args = [_present(one, known) if one.startswith("--") else one for one in args]
        *_, given = self.make_parser(ctx).parse_args([*args])
        for one in given:
            if isinstance(one, click.Option) and not one.multiple and given.count(one) > 1:
                spelled = "/".join([*one.opts, *one.secondary_opts])
                raise click.UsageError(f"{spelled} is given twice; give it once", ctx)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each panel, in the order of most use."""
        places = [one for one in self.get_params(ctx) if isinstance(one, click.Argument)]
        if places:
            with formatter.section("Arguments"):
                rows = [(one.make_metavar(ctx), getattr(one, "meaning", "")) for one in places]
                formatter.write_dl(rows)
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        panels = [getattr(one, "panel", None) for one in options]
        for panel in dict.fromkeys([*_PANELS, *panels]):
            rows = [
                record
                for one, its in zip(options, panels, strict=True)
                if its == panel and (record := one.get_help_record(ctx)) is not None
            ]
            if rows:
                with formatter.section(panel or "Options"):
                    formatter.write_dl(rows, col_max=34)


def command(
    function: Callable[..., Any] | None = None, *, name: str | None = None
) -> Callable[[Callable[..., None]], Command]:
    """Make a command from a function that shows a result.

    Args:
        function: the Python function that is called; its options are those of the command. The
            showing function takes a `Call` first, and may have options of its own.
        name: of the command, if it is not the name of the showing function.
    """

    def decorate(show: Callable[..., None]) -> Command:
        sources = [show] if function is None else [function, show]
        options: dict[str, Parameter] = {}
        for one in (one for source in sources for one in parameters_of(source)):
            options.setdefault(one.name, one)
        parameters = [_as_click(one) for one in options.values()]
        if function is not None:
            parameters.append(
                click.Option(["config", "--config"], help=_CONFIG.help, metavar="FILE")
            )

        def run(**given: Any) -> None:
            config = given.pop("config", None)
            said = {key: value for key, value in given.items() if value not in {None, ()}}
            for key, value in said.items():
                if "\0" in str(value):
                    raise InftdaError(f"{options[key].flag} must not have a zero byte")
            if config is not None:
                said = _configured(Path(config), options) | said
            own = values(show, said)
            if function is None:
                Call(show, own)()
            else:
                show(Call(function, values(function, said)), **own)

        return Command(
            name or show.__name__.strip("_"),
            callback=run,
            params=parameters,
            help=inspect.cleandoc(show.__doc__ or ""),
        )

    return decorate


def _warn(words: str) -> None:
    say(words, err=True)


def _present(word: str, known: Container[str]) -> str:
    """An option of a command line under the name that it has now."""
    former, sign, value = word[2:].partition("=")
    name = former.replace("-", "_")
    new = current_name(name, known, _warn)
    return word if new == name else f"--{new.replace('_', '-')}{sign}{value}"


def _configured(path: Path, options: dict[str, Parameter]) -> dict[str, Any]:
    """Options from a TOML file whose keys are their names.

    One file serves all commands: each takes the keys that it knows, and those in the section of
    its name before others.

    Raises:
        InftdaError: the file cannot be read, or a key is not an option.
    """
    data = read_configuration(path)
    context = click.get_current_context()
    own, group = str(context.info_name), context.parent.command if context.parent else None
    commands = group.list_commands(context) if isinstance(group, click.Group) else []
    # `estimate` is a command, and an option of `report`: a section only where it holds keys.
    sections = {key for key, value in data.items() if isinstance(value, dict)} & {own, *commands}
    section = data[own] if own in sections else {}
    shared = {key: value for key, value in data.items() if key not in sections}
    found = {}
    for key, value in {**shared, **section}.items():
        present = current_name(key.replace("-", "_"), options, _warn)
        name = next((name for name in options if name.strip("_") == present), None)
        if name is not None:
            found[name] = as_given(path, key, options[name], value)
        elif key in section or not _is_known(key, context, group):
            near = get_close_matches(key.replace("-", "_"), list(options), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            if key == own:
                hint = f": it is a command; write [{own}] on a line before its options"
            raise InftdaError(f"the configuration {str(path)!r} has an unknown key {key!r}{hint}")
    return found


def _is_known(key: str, context: click.Context, group: click.Command | None) -> bool:
    """Whether another command has this option."""
    if not isinstance(group, click.Group):
        return False
    others = [group.get_command(context, name) for name in group.list_commands(context)]
    names = {str(one.name).strip("_") for other in others if other for one in other.params}
    return key.replace("-", "_") in names - {"config"}
