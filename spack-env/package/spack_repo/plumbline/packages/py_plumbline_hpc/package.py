"""Plumbline from the checkout that has this recipe."""

from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyPlumblineHpc(PythonPackage):
    """A reproducible benchmark campaign for clusters, with proven placement."""

    git = Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("campaign", default=False, description="Campaigns: ReFrame and what installs stacks from wheels")

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("py-scikit-build-core@1.1:", type="build")
    depends_on("hwloc@2.3:", type=("build", "link"))
    with default_args(type=("build", "run")):
        depends_on("python@3.10:")
        for library in (
            "archspec",
            "argcomplete",
            "clustershell",
            "msgspec",
            "numpy",
            "pyyaml",
            "ruamel-yaml",
            "tabulate",
        ):
            depends_on(f"py-{library}")
        with when("+campaign"):
            depends_on("reframe@4.9:")
            depends_on("py-hatchling")
            depends_on("py-pip@23:")
            depends_on("py-scipy")
            depends_on("py-setuptools@70.1:80")
