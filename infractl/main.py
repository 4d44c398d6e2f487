"""`infractl`: the command line. The only place that prints an error."""

import os
import sys
from importlib import import_module
from typing import Any

import click

from infractl import __version__
from infractl.commands.catalog import COMMANDS
from store.errors import ExitCode, InfractlError
from store.nearest import nearest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: on matrices as small as ours threads only spin


class LazyGroup(click.Group):
    """Commands by name, imported when they are called: `infractl --help` stays quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in catalog order."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None for a name that does not exist."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"infractl.commands.{COMMANDS[cmd_name].module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list from the catalog's texts, importing nothing."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; an unknown one names the nearest."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = nearest(args[0], COMMANDS)
            raise click.UsageError(f"there is no command {args[0]!r}" + (f"; {hint}" if hint else ""))
        return super().resolve_command(ctx, args)


HELP_OPTIONS = ["-h", "--help"]


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": HELP_OPTIONS,
        "auto_envvar_prefix": "INFRACTL",
        "max_content_width": 110,
    },
)
@click.version_option(__version__, prog_name="infractl")
def cli() -> None:
    """Observability and anomaly detection for AI infrastructure: says why P99 went up.

    Exit codes: 0 ok, 1 findings at or above --fail-on, 2 usage or configuration, 3 store, 4 source unreachable,
    130 interrupted. Every option has an environment variable (INFRACTL_<COMMAND>_<OPTION>) and a key in
    infractl.yaml.
    """


def main() -> None:
    """Run the command line; errors become two lines on stderr and the documented exit code."""
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else ExitCode.OK)
    except InfractlError as error:
        _complain(str(error), error.hint)
        sys.exit(error.code)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "infractl"
        _complain(error.format_message(), f"see {where} --help")
        sys.exit(ExitCode.USAGE)
    except click.ClickException as error:
        _complain(error.format_message(), "")
        sys.exit(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():  # DuckDB's way to say that Ctrl-C ended a query
            raise
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ExitCode.OK)


def _complain(fact: str, hint: str) -> None:
    click.echo(f"infractl: error: {fact}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)


if __name__ == "__main__":
    main()
