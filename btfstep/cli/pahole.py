# SPDX-License-Identifier: GPL-2.0-only
"""The command line of pahole, as far as it encodes BTF: read it, then do it."""

from __future__ import annotations

import os
import sys

from btfstep import __version__
from btfstep.cli import PAHOLE_NUMERIC_VERSION, PAHOLE_VERSION, warn
from btfstep.cli.getopt import Argument, CommandLineError, scan
from btfstep.cli.languages import parse_languages
from btfstep.cli.options import ALL, ELSEWHERE, OLDER_FEATURES
from btfstep.encode.jobs import parse_jobs
from btfstep.encode.settings import EncodeSettings
from btfstep.errors import UsageError
from btfstep.features import FeatureChoice, supported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from btfstep.encode.module import Base
    from btfstep.encode.pipeline import Permits

MAX_HASHBITS = 31


class Command:
    """What a command line asks for.

    `answer` is set if it asks a question (a version, help), and is then all
    there is to do: the text to print.
    """

    def __init__(self) -> None:
        self.answer: str | None = None
        self.files: list[str] = []
        self.encode = False
        self.detached: str | None = None
        self.base: str | None = None
        self.jobs = 1
        self.touch = True
        self.record = True
        self.verbose = False
        self.explain = False
        self.features = FeatureChoice()
        self.lang: str | None = None
        self.lang_exclude: str | None = None
        self.cu_exclude: str | None = None
        self.kabi_prefix: str | None = None

    def settings(self, environ: Mapping[str, str]) -> EncodeSettings:
        """What the encoder is told. Raises UsageError for a language that is not known."""
        lang_exclude = self.lang_exclude
        if self.lang is None and lang_exclude is None:
            lang_exclude = environ.get("PAHOLE_LANG_EXCLUDE")
        return EncodeSettings(
            features=self.features.features(),
            lang=None if self.lang is None else parse_languages(self.lang),
            lang_exclude=frozenset() if lang_exclude is None else parse_languages(lang_exclude),
            cu_exclude=self.cu_exclude,
            kabi_prefix=self.kabi_prefix,
            verbose=self.verbose,
        )


def parse(argv: Sequence[str], *, warn: Callable[[str], None] = warn) -> Command:
    """Read a command line.

    `warn` gets the names of unknown features, if ``-V`` came before them.
    Raises CommandLineError if it cannot be read, UsageError if it asks for
    what btfstep does not do.
    """
    command = Command()
    numeric_version = False
    taken_by_jobs = -1  # the index of N in `-j N`
    for argument in scan(argv, ALL):
        if argument.option is None:
            assert argument.value is not None
            if argument.index != taken_by_jobs:
                command.files.append(argument.value)
            continue
        name = argument.option.name
        if name == "jobs":
            value = argument.value
            if value is None and _is_separate_number(argv, argument):
                taken_by_jobs = argument.index + 1
                value = argv[taken_by_jobs]
            command.jobs = parse_jobs(value)
        elif name == "numeric_version":
            numeric_version = True  # answered once the rest has been read, as pahole does
        elif (answer := _answer(name)) is not None:
            command.answer = answer
            return command
        else:
            _apply(command, argument, warn)
    if numeric_version:
        command.answer = PAHOLE_NUMERIC_VERSION + "\n"
    return command


def _is_separate_number(argv: Sequence[str], argument: Argument) -> bool:
    """Whether ``-j`` is followed by N as an argument of its own.

    To pahole that would be a FILE, so a file of that name wins.
    """
    following = argv[argument.index + 1 : argument.index + 2]
    return bool(following) and following[0].isascii() and following[0].isdigit() and not os.path.exists(following[0])


def _answer(name: str) -> str | None:
    if name == "version":
        return PAHOLE_VERSION + "\n"
    if name == "devel_version":
        return f"{PAHOLE_VERSION}-btfstep-{__version__}\n"
    if name == "supported_btf_features":
        return supported() + "\n"
    if name == "usage":
        from btfstep.cli.help import USAGE

        return USAGE
    if name == "help":
        from btfstep.cli.help import help_text

        return help_text()
    return None


def _apply(command: Command, argument: Argument, warn: Callable[[str], None]) -> None:
    """Apply one option that is not a question."""
    assert argument.option is not None
    name, value = argument.option.name, argument.value
    if name in ELSEWHERE:
        about, program = ELSEWHERE[name]
        raise UsageError(f"{argument.spelled} is for {about}, and btfstep only encodes BTF; use {program}")
    if name in OLDER_FEATURES:
        command.features.older_option(OLDER_FEATURES[name])
    elif name == "btf_gen_all":
        command.features.add_list("all")
    elif name == "btf_encode":
        command.encode = True
    elif name in ("touch", "no-touch"):
        command.touch = name == "touch"
    elif name == "no-record":
        command.record = False
    elif name == "verbose":
        command.verbose = True
    elif name == "explain":
        command.explain = True
    else:
        assert value is not None  # all that are left take one
        _apply_value(command, name, value, warn)


def _apply_value(command: Command, name: str, value: str, warn: Callable[[str], None]) -> None:
    """Apply one option that takes a value."""
    if name in ("btf_features", "features"):

        def ignored(feature: str) -> None:
            if command.verbose:
                warn(f"Ignoring unsupported feature '{feature}'")

        command.features.add_list(value, ignored=ignored)
    elif name == "btf_features_strict":
        command.features.add_list(value, strict=True)
    elif name == "btf_encode_detached":
        command.encode = True
        command.detached = value
    elif name == "format_path":
        _check_format(value)
    elif name == "hashbits":
        if value.isascii() and value.isdigit() and not 0 <= int(value[:9]) <= MAX_HASHBITS:
            raise UsageError(f"--hashbits is {value}; it has no effect here, but has to be at most {MAX_HASHBITS}")
    elif name == "btf_base":
        command.base = value
    elif name == "lang":
        command.lang = value
    elif name == "lang_exclude":
        command.lang_exclude = value
    elif name == "cu_exclude":
        command.cu_exclude = value
    elif name == "kabi_prefix":
        command.kabi_prefix = value
    else:
        raise AssertionError(name)


def _check_format(value: str) -> None:
    first = value.split(",")[0]
    if first in ("btf", "ctf"):
        raise UsageError(f"-F {value}: BTF is encoded from DWARF, not from {first.upper()}; use -F dwarf")
    if first != "dwarf":
        raise UsageError(f"-F {value}: unknown debugging format '{first}'; use -F dwarf")


def run(argv: Sequence[str]) -> int:
    """Read a command line and do what it says. Return the exit status; raise what stopped it."""
    command = parse(argv)
    if command.answer is not None:
        sys.stdout.write(command.answer)
        sys.stdout.flush()
        return 0
    settings = command.settings(os.environ)
    if not command.encode:
        raise UsageError(
            "nothing to do: give -J to add BTF to FILE, or --btf_encode_detached=OUT to write it to OUT"
            " (to print types, use pahole)"
        )
    if not command.files:
        raise CommandLineError("no FILE given")
    if len(command.files) > 1:
        raise CommandLineError(f"one FILE at a time, please: {', '.join(command.files)}")
    return _encode(command, command.files[0], settings)


def _encode(command: Command, path: str, settings: EncodeSettings) -> int:
    from btfstep.build.jobserver import permits
    from btfstep.encode.module import Base

    with permits(command.jobs, warn if command.verbose else None) as allowed:
        written = encode_one(
            command,
            path,
            settings,
            jobs=command.jobs,
            base=None if command.base is None else Base(command.base),
            detached=command.detached,
            explain=warn if command.explain else None,
            permits=allowed,
        )
    if written is None:
        # Not an error, as in pahole: builds also pass files that have none.
        warn(f"{path}: has no DWARF, so nothing was written")
    return 0


def encode_one(
    command: Command,
    path: str,
    settings: EncodeSettings,
    *,
    jobs: int,
    base: Base | None,
    detached: str | None,
    explain: Callable[[str], None] | None,
    permits: Permits | None = None,
) -> bool | None:
    """Encode one file, and put the result where it belongs; whether that was written, None if the file has no DWARF.

    `explain` gets a line about each step, if it is given. Raises what encoding and writing raise.
    """
    from btfstep.encode.module import History, encode_module, encode_sections, refuse_signed, set_btf

    log = warn if command.verbose else None
    if detached is None:
        refuse_signed(path)
    # As in pahole, a detached output has no place for the distilled base.
    distill = settings.features.distilled_base and detached is None
    if base is None:
        sections = encode_sections(path, jobs=jobs, options=settings, log=log, permits=permits)
    else:
        history = None if explain is None else History()
        sections = encode_module(
            path,
            jobs=jobs,
            options=settings,
            log=log,
            base=base,
            distill=distill,
            record=command.record,
            history=history,
            permits=permits,
        )
        if explain is not None and history is not None and sections is not None:
            from btfstep.cli.explain import why_encoded

            explain(why_encoded(path, history, base, sections))
    if sections is None:
        return None
    if explain is not None:
        from btfstep.cli.explain import explained_store

        written = explained_store(
            path, sections, detached, split=base is not None, touch=command.touch, explain=explain
        )
    elif detached is not None:
        from btfstep.build.write import write_if_changed

        written = write_if_changed(detached, sections[".BTF"])
    else:
        written = set_btf(path, sections, touch=command.touch)
    if log is not None:
        size = sum(len(contents) for contents in sections.values())
        log(f"{path if detached is None else detached}: {size} bytes of BTF, {'written' if written else 'unchanged'}")
    return written
