"""hwloc as Debian 12 has it."""

from spack_repo.builtin.packages.hwloc.package import Hwloc as Builtin

from spack.package import *


class Hwloc(Builtin):
    version(
        "2.9.0",
        sha256="b3fb1a43a14d8fbcd8e976de5ede2ea7ce1d768ed173adb33c7ceaaf098dc970",
        url="debian:pool/main/h/hwloc/hwloc_2.9.0.orig.tar.bz2",
    )
