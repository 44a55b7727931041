"""Commands that other packages bring: entry points of the group `inftda.commands`.

Each names a `typer.Typer`. They are looked up only for a command that is not one of our own, and
for the list of all.
"""

from importlib.metadata import entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup

GROUP: Final = "inftda.commands"


class Commands(TyperGroup):
    """Our own commands, and those of other packages after them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands, as help shows them."""
        own = super().list_commands(ctx)
        return [*own, *sorted({found.name for found in entry_points(group=GROUP)} - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for found in entry_points(group=GROUP, name=cmd_name):
            command = typer.main.get_command(found.load())
            command.name = cmd_name
            return command
        return None
