"""Outputs of benchmarks that are damaged in any way: the whole list of finite figures, or one error."""

import json
import math
from pathlib import Path

import fuzz
import pytest

from plumbline.parsers import PARSERS, parse

OUTPUTS = Path(__file__).parents[1] / "data" / "outputs"
SOUND = {
    "stream": sorted(OUTPUTS.glob("stream/*.txt")),
    "imb": sorted(OUTPUTS.glob("imb/*-mt*.txt")) + sorted(OUTPUTS.glob("imb/*user*.txt")),
    "osu": sorted(OUTPUTS.glob("osu/*-c-*.txt")),
    "kernel": sorted(OUTPUTS.glob("kernels/*")),
    "application": sorted(OUTPUTS.glob("applications/*")),
}
CONTEXTS = {
    "stream": [{}, {"threads": 2, "array_elements": 10}],
    "imb": [{}, {"benchmark": "PingPong"}, {"benchmark": "PingPongMT", "ranks": 2, "last_bytes": 2048}],
    "osu": [{"benchmark": "osu_latency", "last_bytes": 4096}, {"benchmark": "osu_allreduce", "last_bytes": 4096}],
    "kernel": [{}, {"ranks": 2}],
    "application": [
        {
            "rules": {
                "figures": {"rate": {"pattern": r"Performance: (\S+) MLUP/s", "unit": "MLUP/s", "better": "higher"}},
                "checks": [{"pattern": r"Checksum: (\S+)", "value": 9179.57, "tolerance": 0.1}],
            }
        },
        {"rules": {"figures": {"time": {"json": "runs.0.time", "unit": "s"}}}},
        {"rules": {"figures": {"time": {"csv": "Time (s)", "unit": "s"}}}},
    ],
}

CASES = [(parser, number) for parser, contexts in CONTEXTS.items() for number in range(len(contexts))]


@pytest.mark.parametrize(("parser", "number"), CASES)
def test_a_damaged_output_is_one_error_or_finite_figures(parser, number):
    def read(text):
        for one in parse(parser, text.decode(errors="replace"), CONTEXTS[parser][number]):
            assert math.isfinite(one.value)
            assert one.value >= 0

    sound = [file.read_bytes() for file in SOUND[parser] if file.is_file()]
    fuzz.attack(read, fuzz.spoiled_texts(f"{parser} {number}", sound))


def test_a_kernel_document_with_odd_members_is_one_error_or_finite_figures():
    sound = [json.loads(file.read_text()) for file in SOUND["kernel"] if file.suffix == ".json"]

    def read(document):
        for one in parse("kernel", json.dumps(document), {}):
            assert math.isfinite(one.value)

    fuzz.attack(read, fuzz.spoiled_documents("kernel documents", sound))


@pytest.mark.parametrize("value", fuzz.VALUES, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize("key", ["benchmark", "ranks", "last_bytes", "mode", "threads", "array_elements", "kernel"])
def test_an_odd_context_is_one_error(key, value):
    def read(parser):
        text = SOUND[parser][0].read_text()
        assert parse(parser, text, {**CONTEXTS[parser][-1], key: value}) is not None

    fuzz.attack(read, iter(PARSERS))
