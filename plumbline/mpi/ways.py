"""The ways of messages: their names in libraries, marks of a library that has one, settings that turn one off.

Sources: UCX's ``ucx_info -d`` and ``UCX_TLS``, libfabric's ``fi_info`` and ``FI_PROVIDER``, Open MPI's components.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SHARED, CMA, XPMEM, KNEM = "shared memory", "CMA", "XPMEM", "KNEM"
INFINIBAND, ROCE, OMNIPATH, SLINGSHOT, TCP = "InfiniBand", "RoCE", "Omni-Path", "Slingshot", "TCP"
#: ways of a large message from rank to rank of a node in one copy
SINGLE_COPY = (XPMEM, KNEM, CMA)
#: networks that a library reaches past the kernel
FABRICS = (INFINIBAND, ROCE, OMNIPATH, SLINGSHOT)
_VERBS = r"(?:rc|dc|ud|gga)(?:_x|_mlx5|_verbs)?|openib|mlx|verbs|psm3"


@dataclass(frozen=True)
class Way:
    """``words``: a pattern of its names in the libraries; ``mark``: text in a file that can use it.

    ``devices``: how the device files begin that are open where it is used; ``build``: how a library is built with it.
    """

    words: str
    mark: bytes
    devices: str
    build: str


WAYS: dict[str, Way] = {
    XPMEM: Way("xpmem", b"xpmem_make", "/dev/xpmem", "--with-xpmem, of UCX or the MPI library"),
    KNEM: Way("knem", b"/dev/knem", "/dev/knem", "--with-knem, of UCX or the MPI library"),
    CMA: Way("cma", b"process_vm_readv", "", "--with-cma; UCX has it as libuct_cma"),
    INFINIBAND: Way(_VERBS, b"ibv_open_device", "/dev/infiniband/", "UCX --with-verbs, or libfabric's verbs"),
    ROCE: Way(_VERBS, b"ibv_open_device", "/dev/infiniband/", "UCX --with-verbs, or libfabric's verbs"),
    OMNIPATH: Way("psm2|opx", b"psm2_ep_open", "/dev/hfi1_", "libfabric's psm2 or opx"),
    SLINGSHOT: Way("cxi", b"cxil_open_device", "/dev/cxi", "libfabric's cxi"),
}


@dataclass(frozen=True)
class Switch:
    """A setting that turns a way off, by the variable that sets it.

    ``values``: those by which it is off. ``words``: those that keep it on in a list such as ``self,tcp``; of a list of
    exclusions, such as ``^sm``, the first of them.
    """

    variable: str
    way: str
    words: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def is_off(self, value: str) -> bool:
        """Whether ``value`` turns the way off.

        >>> tls = Switch("UCX_TLS", SHARED, ("sm", "posix", "all"))
        >>> tls.is_off("tcp,self"), tls.is_off("self,posix"), tls.is_off("^sm"), tls.is_off("^ud")
        (True, False, True, False)
        >>> [one.is_off("tcp") for one in OPEN_MPI if one.variable.endswith("ofi_provider_include")]
        [True, True]
        """
        listed = [word for word in re.split(r"[,:;\s]+", value.strip().lstrip("^").lower()) if word]
        if value.strip().lower() in self.values or not (listed and self.words):
            return value.strip().lower() in self.values
        return self.words[0] in listed if value.strip().startswith("^") else not set(self.words) & set(listed)


_NO = ("0", "no", "off", "false", "disable")
_UCX_VERBS = ("ib", "rc", "rc_x", "rc_v", "rc_mlx5", "rc_verbs", "ud", "ud_x", "dc", "dc_x", "dc_mlx5", "all")
#: those of the libraries below MPI
SWITCHES = (
    Switch("UCX_TLS", SHARED, ("sm", "shm", "mm", "posix", "sysv", "xpmem", "all")),
    Switch("UCX_TLS", CMA, ("cma", "sm", "shm", "all")),
    Switch("UCX_TLS", XPMEM, ("xpmem", "sm", "shm", "mm", "all")),
    Switch("UCX_TLS", KNEM, ("knem", "sm", "shm", "all")),
    *(Switch("UCX_TLS", way, _UCX_VERBS) for way in (INFINIBAND, ROCE)),
    *(Switch("FI_PROVIDER", way, ("verbs", "mlx", "psm3", "ofi_rxm")) for way in (INFINIBAND, ROCE)),
    Switch("FI_PROVIDER", OMNIPATH, ("psm2", "opx")),
    Switch("FI_PROVIDER", SLINGSHOT, ("cxi",)),
)
#: libfabric's providers that reach ranks of a node by the network stack alone
_OFI_TCP = ("tcp", "tcp;ofi_rxm", "sockets", "udp", "udp;ofi_rxd")
OPEN_MPI = (
    Switch("OMPI_MCA_btl", SHARED, ("sm", "vader", "smcuda")),
    *(Switch(f"OMPI_MCA_{name}_ofi_provider_include", SHARED, values=_OFI_TCP) for name in ("opal_common", "mtl")),
    *(Switch("OMPI_MCA_smsc", way, (way.lower(),)) for way in SINGLE_COPY),
    *(
        Switch(f"OMPI_MCA_btl_{name}_single_copy_mechanism", way, (way.lower(),))
        for name in ("vader", "sm")
        for way in SINGLE_COPY
    ),
    *(Switch("OMPI_MCA_pml", way, ("ucx", "cm")) for way in (INFINIBAND, ROCE)),
    *(Switch("OMPI_MCA_pml", way, ("cm",)) for way in (OMNIPATH, SLINGSHOT)),
)
MPICH = (
    Switch("MPIR_CVAR_NOLOCAL", SHARED, values=("1", "yes", "on", "true", "enable")),
    Switch("MPIR_CVAR_CH4_CMA_ENABLE", CMA, values=_NO),
    Switch("MPIR_CVAR_CH4_XPMEM_ENABLE", XPMEM, values=_NO),
    Switch("MPIR_CVAR_OFI_USE_PROVIDER", SLINGSHOT, ("cxi",)),
)
INTEL_MPI = (
    Switch("I_MPI_FABRICS", SHARED, ("shm",)),
    Switch("I_MPI_SHM", SHARED, values=_NO),
    *(Switch("I_MPI_OFI_PROVIDER", way, ("verbs", "mlx", "psm3")) for way in (INFINIBAND, ROCE)),
    Switch("I_MPI_OFI_PROVIDER", OMNIPATH, ("psm2",)),
    Switch("I_MPI_OFI_PROVIDER", SLINGSHOT, ("cxi",)),
)
#: lines that report how a peer is reached: UCX at the level ``info``, Open MPI's bml and OFI, Intel MPI and MPICH
_REACHES = (
    re.compile(r"UCX +INFO +.*(?:(?:intra|inter)-node cfg#\d+|ep_cfg\[\d+\]:) (?:tag|am)\((?P<many>[^)]*)\)"),
    re.compile(r"mca: bml: Using (?P<single>(?!self )\S+) btl for send to "),
    re.compile(r"mtl:ofi:prov(?:ider)?: (?P<single>\S+)"),
    re.compile(r"libfabric provider: (?P<single>\S+)"),
)


def reported(lines: Iterable[str]) -> list[str]:
    """The transports to peers that the libraries report, in their words, each once: ``rc_mlx5/mlx5_0:1``, ``tcp``."""
    peers: dict[str, None] = {}
    for line in lines:
        for pattern in _REACHES:
            if match := pattern.search(line):
                words = (match.groupdict().get("many") or match.groupdict().get("single") or "").split()
                peers |= dict.fromkeys(words if "self/memory" not in words else ())
    return list(peers)


def is_of(word: str, way: str) -> bool:
    """Whether a library calls ``way`` so; ``verbs;ofi_rxm`` and ``rc_mlx5/mlx5_0:1`` are of InfiniBand and of RoCE.

    >>> is_of("rc_mlx5/mlx5_0:1", INFINIBAND), is_of("shm+cxi:linkx", SLINGSHOT), is_of("tcp/ib0", INFINIBAND)
    (True, True, False)
    """
    return any(re.fullmatch(WAYS[way].words, part) for part in re.split(r"[;+:]", word.partition("/")[0]))
