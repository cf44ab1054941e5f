"""STREAM from one commit, with every flag that decides its figures written here."""

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Stream(Package):
    """McCalpin's STREAM in C with OpenMP: sustainable memory bandwidth (https://www.cs.virginia.edu/stream/)."""

    homepage = "https://www.cs.virginia.edu/stream/"
    git = "https://github.com/jeffhammond/STREAM.git"

    license("Stream Benchmark", checked_by="plumbline")

    version("5.10", commit="6703f7504a38a8da96b353cadafa64d3c2d7a2d3")

    variant(
        "stream_array_size",
        default="80000000",
        values=lambda value: value.isdigit() and int(value) >= 10_000_000,
        description="Elements of each of the three arrays: at least four times the last-level caches",
    )
    variant("ntimes", default="20", values=lambda value: value.isdigit(), description="Repetitions of each kernel")

    depends_on("c", type="build")

    def flags(self):
        """Compiler options; the target's come from Spack's wrapper."""
        elements = int(self.spec.variants["stream_array_size"].value)
        options = ["-O3", self.compiler.openmp_flag]
        if 3 * 8 * elements > 2**31 - 2**27:  # static arrays that the small code model cannot address
            model = "-mcmodel=medium" if self.spec.target.family == "x86_64" else "-mcmodel=large"
            options += ["-fno-pie", "-no-pie", model]
        return [*options, f"-DSTREAM_ARRAY_SIZE={elements}", f"-DNTIMES={self.spec.variants['ntimes'].value}"]

    def install(self, spec, prefix):
        mkdirp(prefix.bin)
        Executable(spack_cc)(*self.flags(), "-o", prefix.bin.stream, "stream.c")
        mkdirp(prefix.share.stream)
        install("LICENSE.txt", prefix.share.stream)
        install("stream.c", prefix.share.stream)
