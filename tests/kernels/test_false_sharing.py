"""``false_sharing``: counters at every distance add up (experiment D3)."""

import pytest

FEW = ("--increments", "2000", "--repetitions", "2")


def test_every_padding_and_mode(kernel_stack):
    document = kernel_stack.json(2, "false_sharing", *FEW, threads=3)
    figures: dict[str, dict[tuple[str, int], float]] = {}
    for item in document["measurements"]:
        place = item["params"]["mode"], item["params"]["padding"]
        figures.setdefault(item["metric"], {})[place] = item["value"]
    assert set(figures["time"]) == {(m, p) for m in ("plain", "atomic", "own") for p in (8, 16, 32, 64, 128, 256)}
    for (mode, padding), time in figures["time"].items():
        assert figures["ratio"][mode, padding] == pytest.approx(time / figures["time"][mode, 256])
