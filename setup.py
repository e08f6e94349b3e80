# SPDX-License-Identifier: GPL-2.0-only
"""Compile every ``btfstep/**/*.pyx`` to a C extension, and take ``kbuild/`` in; pyproject.toml holds the rest."""

from __future__ import annotations

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

JOBS = os.cpu_count() or 1


class ParallelBuildExt(build_ext):  # type: ignore[misc]
    """build_ext that compiles as many extensions at once as there are processors."""

    parallel: int | bool | None

    def finalize_options(self) -> None:
        super().finalize_options()
        if self.parallel is None:
            self.parallel = JOBS


def extensions() -> list[Extension]:
    """One extension for each .pyx file, named after its path."""
    return [
        Extension(
            ".".join(source.with_suffix("").parts),
            [str(source)],
            extra_compile_args=["-O3", "-fvisibility=hidden"],
        )
        for source in sorted(Path("btfstep").rglob("*.pyx"))
    ]


setup(
    packages=[*find_packages(include=["btfstep*"]), "btfstep.kbuild"],
    # What other build systems include; 'btfstep kbuild' tells where it is.
    package_dir={"btfstep.kbuild": "kbuild"},
    ext_modules=cythonize(extensions(), nthreads=JOBS, language_level=3, build_dir="build/cython"),
    cmdclass={"build_ext": ParallelBuildExt},
)
