"""From a Python function to a command: its options, help, configuration, and the call.

The parameters of the function carry their options (`inftda.options`). Only given options
are passed on, so defaults stand in Python alone.
"""

import inspect
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, Final, get_args

import click

from inftda.errors import InftdaError
from inftda.options import (
    AREAS,
    GUARANTEE,
    RUN,
    TABLE,
    Group,
    Option,
    check_renamed,
    metadata,
    names,
    signature_of,
    whole_numbers,
)
from inftda.util.screen import Meter

_PANELS: Final = (None, TABLE, AREAS, GUARANTEE, RUN)
_CONFIG: Final = Option(
    "TOML file of options; those below [COMMAND] are for one command. The command line wins.",
    metavar="FILE",
)


class Call:
    """The Python function of a command, with its given arguments.

    Attributes:
        given: the given parameters, by name.
    """

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
            spelled = [_spelling(one) for one in _options(self._function) if one.name in missing]
            raise InftdaError(f"give {' and '.join(spelled)}")
        return self._function(*arguments, **self.given, **more)

    def with_progress(self, unit: str, *, quiet: bool, json: bool, **more: Any) -> Any:
        """Call it with a progress bar, and report if kernels are compiled meanwhile."""
        with (
            announced_compilation(shown=not quiet),
            Meter(unit, shown=not (quiet or json)) as progress,
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


class _Parameter:
    """One option of a command: its parameter, its kind and its spelling.

    Attributes:
        name: of the parameter in Python.
        option: its help and its parser.
        kind: type of its value where it is not parsed.
        default: in Python.
        is_several: whether it takes several values, by comma.
    """

    def __init__(
        self, parameter: inspect.Parameter, option: Option, *, is_several: bool = False
    ) -> None:
        self.name, self.option, self.is_several = parameter.name, option, is_several
        hint = parameter.annotation.__origin__
        kinds = get_args(hint) or (hint,)
        self.kind = next((kind for kind in (bool, int, float) if kind in kinds), str)
        self.default = parameter.default

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.strip('_').replace('_', '-')}"

    def as_click(self) -> click.Parameter:
        """Return the parameter for the parser."""
        option = self.option
        is_parsed = option.parse is not None or (self.is_several and self.kind is not bool)
        common: dict[str, Any] = {
            "metavar": option.metavar,
            "type": str if is_parsed else self.kind,
        }
        if option.is_argument:
            place: Any = click.Argument([self.name], required=False, **common)
            place.meaning = self._help()
            return place  # type: ignore[no-any-return] # a click.Argument with help
        if self.kind is bool and not is_parsed:
            spelled = option.spelling or self.flag
            made: Any = click.Option(
                [self.name, spelled], help=self._help(), default=None, is_flag=True
            )
        else:
            common["metavar"] = option.metavar or {int: "NUMBER", float: "NUMBER"}.get(
                self.kind, self.name.strip("_").rpartition("_")[2].upper()
            )
            made = click.Option(
                [self.name, self.flag], help=self._help(), multiple=option.is_repeated, **common
            )
        made.panel = option.panel
        return made  # type: ignore[no-any-return] # a click.Option with a panel

    def _help(self) -> str:
        # Notes about Python come last.
        text = self.option.help.partition(" In Python")[0].replace("`", "")
        notes = ["may be repeated"] if self.option.is_repeated else []
        if self.is_several and self.kind is not bool:
            notes.append("several by comma")
        if isinstance(self.default, str | int | float) and not isinstance(self.default, bool):
            notes += [] if "default" in text else [f"default: {self.default}"]
        elif isinstance(self.default, tuple) and self.default:
            notes.append(f"default: {','.join(map(str, self.default))}")
        return f"{text}  [{'; '.join(notes)}]" if notes else text

    def read(self, given: Any) -> Any:
        """Parse the text given on the command line.

        Raises:
            InftdaError: it cannot be read.
        """
        if self.option.parse is None and (not self.is_several or self.kind is bool):
            return given
        said = " ".join(given) if isinstance(given, tuple | list) else str(given)
        try:
            if self.is_several and self.kind is int:
                return whole_numbers(given)
            if self.is_several and self.kind is str:
                return names(given)
            return given if self.option.parse is None else self.option.parse(given)
        except ValueError as problem:
            raise InftdaError(f"{self.flag} {problem}, got {said[:40]!r}") from None


def _spelling(one: _Parameter) -> str:
    return str(one.option.metavar or one.name.upper()) if one.option.is_argument else one.flag


def _options(make: Callable[..., Any], *, is_several: bool = False) -> Iterator[_Parameter]:
    """All options of a function, those of groups included."""
    for parameter in signature_of(make).parameters.values():
        for one in metadata(parameter):
            if isinstance(one, Option):
                yield _Parameter(parameter, one, is_several=is_several)
            elif isinstance(one, Group):
                yield from _options(one.make, is_several=one.is_several)


def _values(make: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Parameter to value, of those parameters of a function that were given."""
    values: dict[str, Any] = {}
    for parameter in signature_of(make).parameters.values():
        for one in metadata(parameter):
            if isinstance(one, Option) and parameter.name in given:
                values[parameter.name] = _Parameter(parameter, one).read(given[parameter.name])
            elif isinstance(one, Group):
                _add_group(values, parameter.name, one, given)
    return values


def _add_group(values: dict[str, Any], name: str, group: Group, given: dict[str, Any]) -> None:
    """Build the value of a group of options, if one of them was given."""
    if group.is_several:
        options = {
            one.name: one.read(given[one.name])
            for one in _options(group.make, is_several=True)
            if one.name in given
        }
        lists = [value if isinstance(value, list) else [value] for value in options.values()]
        if options:
            values[name] = [
                group.make(**dict(zip(options, some, strict=True))) for some in product(*lists)
            ]
        return
    inner = _values(group.make, given)
    if inner:
        own = [values[name]] if name in values else []
        values[name] = group.make(*own, **inner)


class Command(click.Command):
    """A command with help in panels, whose options may be given once each."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            click.UsageError: an option that takes one value is given twice.
        """
        try:
            *_, given = self.make_parser(ctx).parse_args([*args])
        except click.NoSuchOption as problem:
            name = problem.option_name.strip("-").replace("-", "_")
            check_renamed([name], {one.name for one in self.params})
            raise
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
        options: dict[str, _Parameter] = {}
        for one in (one for source in sources for one in _options(source)):
            options.setdefault(one.name, one)
        parameters = [one.as_click() for one in options.values()]
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
            own = _values(show, said)
            if function is None:
                Call(show, own)()
            else:
                show(Call(function, _values(function, said)), **own)

        return Command(
            name or show.__name__.strip("_"),
            callback=run,
            params=parameters,
            help=inspect.cleandoc(show.__doc__ or ""),
        )

    return decorate


def _configured(path: Path, options: dict[str, _Parameter]) -> dict[str, Any]:
    """Options from a TOML file whose keys are their names.

    One file serves all commands: each takes the keys that it knows, and those in the section of
    its name before others.

    Raises:
        InftdaError: the file cannot be read, or a key is not an option.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InftdaError(
            f"cannot read the configuration {str(path)!r}: {problem.strerror}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InftdaError(f"the configuration {str(path)!r} is not TOML: {problem}") from None
    context = click.get_current_context()
    own, group = str(context.info_name), context.parent.command if context.parent else None
    commands = group.list_commands(context) if isinstance(group, click.Group) else []
    # `estimate` is a command, and an option of `report`: a section only where it holds keys.
    sections = {key for key, value in data.items() if isinstance(value, dict)} & {own, *commands}
    section = data[own] if own in sections else {}
    shared = {key: value for key, value in data.items() if key not in sections}
    found = {}
    for key, value in {**shared, **section}.items():
        name = next((name for name in options if name.strip("_") == key.replace("-", "_")), None)
        if name is not None:
            found[name] = _as_given(path, key, options[name], value)
        elif key in section or not _is_known(key, context, group):
            check_renamed([key.replace("-", "_")], options)
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


def _as_given(path: Path, key: str, one: _Parameter, value: Any) -> Any:
    """A value of TOML as it would be given on the command line.

    Raises:
        InftdaError: it is of the wrong kind.
    """
    option, is_text = one.option, one.option.parse is not None or one.is_several
    if isinstance(value, dict):
        texts = [f"{name}={item}" for name, item in value.items()]
        return texts if option.is_repeated else ",".join(texts)
    if isinstance(value, list) and (is_text or option.is_repeated):
        is_one = not option.is_repeated or not any(isinstance(item, str) for item in value)
        joined = ",".join(map(str, value))
        return [joined] if is_one and option.is_repeated else joined if is_one else value
    if option.is_repeated:
        return [str(value)]
    if is_text and not isinstance(value, bool):
        return str(value)
    fitting = {bool: bool, int: int, float: int | float}.get(one.kind, str | int | float)
    if isinstance(value, fitting) and isinstance(value, bool) == (one.kind is bool):
        return one.kind(value)
    wanted = {bool: "true or false", int: "a whole number", float: "a number"}.get(one.kind, "text")
    raise InftdaError(f"{key!r} of the configuration {str(path)!r} must be {wanted}")
