"""The command line: each command a few lines over `spantree.files`, `spantree.view` and the public functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ._common import complain
from .annotate import annotate, sample
from .convert import convert
from .evaluate import calibrate, evaluate, stats
from .look import demo, view
from .mend import complete, repair, validate

app = typer.Typer(
    name="spantree",
    help="Trees, confidence and pictures from the scores of dependency parsers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"spantree {__version__}")
        raise typer.Exit


@app.callback()
def _about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="The version.")
    ] = False,
) -> None:
    pass


for _command in (annotate, sample, view, evaluate, calibrate, stats, validate, repair, complete, convert, demo):
    app.command(name="eval" if _command is evaluate else None)(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0 fine, 1 something was found wrong, 2 bad files or options."""
    try:
        app(arguments, prog_name="spantree")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except OSError as error:  # while help is printed
        complain(str(error))
        return 2
    return 0
