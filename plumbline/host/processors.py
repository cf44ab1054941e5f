"""Memory channels of processors by data sheet, for hosts whose modules nobody could read. ``site.yaml`` goes first."""

from __future__ import annotations

import re

#: name of the processor -> memory channels of a package, and their fastest MT/s with one module each. Sources: AMD's
#: product pages of EPYC 7002, 7003, 9004 and 9005; ark.intel.com, "Max # of Memory Channels", "Maximum Memory Speed".
#: Series whose members differ in speed (Gold 6300 and 6400, Platinum 8500) are not here
CHANNELS = (
    (r"AMD EPYC 7\w\w[23](?!\d)", 8, 3200),
    (r"AMD EPYC 9\w\w4(?!\d)", 12, 4800),
    (r"AMD EPYC 9\w\w5(?!\d)", 12, 6000),
    (r"Intel.*(Platinum 81|Gold 61)\d\d(?![\dH])", 6, 2666),
    (r"Intel.*(Platinum 82|Gold 62)\d\d(?![\dHV])", 6, 2933),
    (r"Intel.*Platinum 83\d\d(?![\dH])", 8, 3200),
    (r"Intel.*Platinum 84\d\d(?![\dH])", 8, 4800),
)
#: bytes of a transfer of all of these
TRANSFER = 8


def memory_peak(processor: str, packages: int) -> tuple[float, str] | None:
    """Peak rate of the memory of ``packages`` packages in MB/s and how it is made up; None for another processor.

    >>> memory_peak("AMD EPYC 7763 64-Core Processor", 2)
    (409600, '2 packages x 8 channels x 3200 MT/s x 8 B by data sheet')
    """
    for name, channels, rate in CHANNELS:
        if re.search(name, processor):
            method = f"{packages} packages x {channels} channels x {rate} MT/s x {TRANSFER} B by data sheet"
            return packages * channels * rate * TRANSFER, method
    return None
