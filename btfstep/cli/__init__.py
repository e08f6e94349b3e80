# SPDX-License-Identifier: GPL-2.0-only
"""The ``btfstep`` command.

This module answers the questions that builds ask again and again (which
version, which features) before it imports anything else, and turns every error
into one line and an exit status. `pahole.py` does the rest.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the same without its enums, which take half as long to import as Python to start

PAHOLE_MAJOR = 1
PAHOLE_MINOR = 32
PAHOLE_VERSION = f"v{PAHOLE_MAJOR}.{PAHOLE_MINOR}"
PAHOLE_NUMERIC_VERSION = f"{PAHOLE_MAJOR}{PAHOLE_MINOR}"

EXIT_FAILURE = 1

# The first argument, and the module whose run() gets the others. Anything else is for pahole's command line.
SUBCOMMANDS = {
    "btf": "btfstep.cli.btf",
    "diff": "btfstep.cli.diff",
    "dump": "btfstep.cli.dump",
    "kbuild": "btfstep.cli.kbuild",
    "modules": "btfstep.cli.modules",
    "ninja": "btfstep.cli.ninja",
    "uses": "btfstep.cli.uses",
    "vmlinux-h": "btfstep.cli.vmlinux_h",
}


def command() -> NoReturn:
    """The whole process: `main`, and its status.

    A process that ends gives all it has back at once, so neither is garbage
    looked for nor is anything taken apart at the end: a tenth of the time of
    the step for one module. Ctrl-C ends it without a traceback at any time.
    """
    import gc
    import os

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    status = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = EXIT_FAILURE
    except OSError as error:
        status = _complain(f"cannot write: {error.strerror}")
    os._exit(status)


def main(argv: list[str] | None = None) -> int:
    """Run the command with these arguments (``sys.argv[1:]`` if None); return the exit status.

    SIGINT, SIGTERM and SIGHUP end the whole process by that signal, as make
    expects of its children.
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        if arguments == ["--version"]:
            return _answer(PAHOLE_VERSION)
        if arguments == ["--numeric_version"]:
            return _answer(PAHOLE_NUMERIC_VERSION)
        if arguments == ["--supported_btf_features"]:
            from btfstep.features import supported

            return _answer(supported())
        from btfstep.build.interrupt import Interruptible

        with Interruptible():
            return _run(arguments)
    except KeyboardInterrupt:
        return _die_of_interrupt()
    except BrokenPipeError:
        return _reader_is_gone()
    except MemoryError as error:
        return _complain("out of memory", getattr(error, "exit_status", EXIT_FAILURE))
    except Exception as error:
        return _complain(describe(error), getattr(error, "exit_status", EXIT_FAILURE))


def _run(arguments: list[str]) -> int:
    if arguments and arguments[0] in SUBCOMMANDS:
        from importlib import import_module

        status: int = import_module(SUBCOMMANDS[arguments[0]]).run(arguments[1:])
        return status
    from btfstep.cli.pahole import run

    return run(arguments)


def _answer(line: str) -> int:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return 0


def warn(line: str) -> None:
    """Print a line on standard error, if there is anybody to read it."""
    try:
        sys.stderr.write(f"btfstep: {line}\n")
        sys.stderr.flush()
    except OSError:
        pass


def _complain(line: str, status: int = EXIT_FAILURE) -> int:
    warn(line)
    return status


def describe(error: Exception) -> str:
    """The line that says what went wrong."""
    from btfstep.errors import BtfstepError

    if isinstance(error, BtfstepError):
        return " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return place + error.strerror
    # A defect of this program. A build's log gets one line all the same.
    import os

    if os.environ.get("BTFSTEP_TRACEBACK"):
        raise error
    text = " ".join(str(error).split())
    return f"internal error: {type(error).__name__}: {text} (please report it; BTFSTEP_TRACEBACK=1 shows where)"


def _reader_is_gone() -> int:
    import os

    # What is still buffered cannot be written: without this, the interpreter
    # would try at exit, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return EXIT_FAILURE


def _die_of_interrupt() -> int:
    import os

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
    return 128 + signal.SIGINT
