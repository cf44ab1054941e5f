"""Parsers of benchmark output: the whole list of measurements, or a :class:`ParseError`, never a part of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plumbline import mpi
from plumbline.parsers import application, imb, kernel, osu, stream
from plumbline.parsers.measurement import Measurement, ParseError, Work

#: Name of a parser to its function.
PARSERS: dict[str, Callable[[str, Mapping[str, Any]], list[Measurement]]] = {
    "stream": stream.parse,
    "imb": imb.parse,
    "osu": osu.parse,
    "kernel": kernel.parse,
    "application": application.parse,
}


def parse(parser: str, text: str, context: Mapping[str, Any] | None = None) -> list[Measurement]:
    """Parse ``text``, the whole unmodified standard output of one launch, with the parser of that name.

    Lines of MPI libraries are left out (:func:`plumbline.mpi.without_log`).

    ``context`` says what was asked for; what the output contradicts is an error. Keys (all optional but as said):

    - ``benchmark``: what must be in the output (``PingPong``, ``osu_latency``); needed if an IMB output holds several
    - ``ranks``: number of processes; needed if an IMB output holds several numbers of processes
    - ``last_bytes``: largest message size; needed for OSU tables and IMB-MT, which print no end mark
    - ``buffers``: where OSU's messages must have lain, ``D D`` for those of two GPUs
    - ``mode``: ``aggregate`` or ``non-aggregate``, to take one mode of an IMB-RMA benchmark
    - ``threads``, ``array_elements``: what STREAM must have counted (``threads`` for IMB-MT and our kernels too)
    - ``kernel``: which of our kernels it must be
    """
    if parser not in PARSERS:
        raise ParseError(f"unknown parser '{parser}'", cure=f"one of {', '.join(PARSERS)}")
    if not (measurements := PARSERS[parser](mpi.without_log(text), context or {})):
        raise ParseError(f"{parser}: the output holds no measurement")
    return measurements


def remarks(parser: str, text: str) -> list[str]:
    """The program's remarks on this launch, without figures; ``text`` is an output that :func:`parse` accepts."""
    return kernel.remarks(mpi.without_log(text)) if parser == "kernel" else []


def work(parser: str, texts: Sequence[str]) -> Work | None:
    """The work of the program in everything that it timed.

    ``texts`` are outputs that :func:`parse` accepts, one of each process for STREAM. None if the program has no model.
    """
    if parser == "stream":
        return stream.work(texts)
    return kernel.work(mpi.without_log("".join(texts))) if parser == "kernel" else None
