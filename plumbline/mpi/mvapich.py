"""MVAPICH, made from MPICH: https://mvapich.cse.ohio-state.edu/userguide/."""

from __future__ import annotations

from types import MappingProxyType

from plumbline.mpi.base import Family
from plumbline.mpi.mpich import HYDRA_RANKS, Mpich
from plumbline.schedulers import RankVariables


class Mvapich(Mpich):
    """MVAPICH2, and MVAPICH from version 3 on, whose variables have another prefix."""

    name = "mvapich"
    #: the library binds its ranks itself in MPI_Init
    unbound = MappingProxyType({"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"})
    rank_variables = (
        RankVariables(
            "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE"
        ),
        *HYDRA_RANKS,
    )
    variables = ("MV2_", "MVP_", *Mpich.variables)
    #: none was tried, and version 2 has other settings than MPICH
    knobs = ()
    rule_settings = Family.rule_settings
