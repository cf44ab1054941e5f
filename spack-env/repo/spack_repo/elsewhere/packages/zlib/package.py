"""zlib as Debian 13 has it. Spack looks for the class that builds it in this file."""

from spack_repo.builtin.packages.zlib.package import MakefileBuilder  # noqa: F401
from spack_repo.builtin.packages.zlib.package import Zlib as Builtin

from spack.package import *


class Zlib(Builtin):
    version(
        "1.3.1",
        sha256="60dd315c07f616887caa029408308a018ace66e3d142726a97db164b3b8f69fb",
        url="debian:pool/main/z/zlib/zlib_1.3.dfsg+really1.3.1.orig.tar.gz",
    )
