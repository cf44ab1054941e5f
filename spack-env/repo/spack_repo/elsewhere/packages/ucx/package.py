"""UCX as Debian 12 has it: the files of its repository, without a configure."""

from spack_repo.builtin.packages.ucx.package import Ucx as Builtin

from spack.package import *


class Ucx(Builtin):
    version(
        "1.13.1",
        sha256="1a88e09ca1b406c046a469c2ae271d2c330050b5664c0bcd9890e26c6ef09f3c",
        url="debian:pool/main/u/ucx/ucx_1.13.1.orig.tar.xz",
    )

    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")

    def autoreconf(self, spec, prefix):
        # configure wants this folder, which Debian has renamed
        rename("debian.upstream", "debian")
        Executable("./autogen.sh")()
