"""What goes wrong is told in one line, without a traceback, and by the exit code.

0    done
1    bad data, a bad model file, a full disk: the line says which
2    a command that cannot be understood
130  stopped by Ctrl-C; what was learnt is saved
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from bayou.errors import BayouError

FAILED, STOPPED = 1, 130


class Failed(BayouError):
    """Something that the user can mend, in one line."""


@contextmanager
def told_in_one_line() -> Iterator[None]:
    """Let no traceback through of what is the data's fault or the machine's."""
    try:
        yield
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except BayouError as error:
        raise fail(str(error)) from None
    except OSError as error:
        raise fail(_of_system(error)) from None
    except KeyboardInterrupt:  # a second time, or where nothing is saved
        typer.echo("bayou: stopped", err=True)
        raise typer.Exit(STOPPED) from None
    except (ImportError, MemoryError) as error:
        raise fail(str(error) or "there is not enough memory.") from None


def fail(message: str) -> typer.Exit:
    """Say it, and leave."""
    line = " ".join(message.split())
    typer.echo(f"bayou: {line}", err=True)
    return typer.Exit(FAILED)


def _of_system(error: OSError) -> str:
    name = f" {error.filename}" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full; nothing was overwritten:{name or ' ' + str(error)}"
    return f"{error.strerror or error}:{name}" if name else str(error.strerror or error)
