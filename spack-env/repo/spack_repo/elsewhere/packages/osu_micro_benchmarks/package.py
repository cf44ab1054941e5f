"""The OSU micro-benchmarks from a public copy of the release, by commit; nobody signed its files."""

from spack_repo.builtin.packages.osu_micro_benchmarks.package import OsuMicroBenchmarks as Builtin

from spack.package import *


class OsuMicroBenchmarks(Builtin):
    version(
        "7.4",
        sha256="4d0b9ee6069db92422452f8bdfe0470853a4daf477b578a31ecf555c224883c7",
        url="https://github.com/sherrywong1220/osu-micro-benchmarks-7.4/archive/bed60f564c2908a6123315f49f6dd0c0ff5440a3.tar.gz",
    )
