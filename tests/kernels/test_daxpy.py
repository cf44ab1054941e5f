"""``daxpy``: first touch by the threads and by the master (experiments T1, T2, T3)."""

import pytest

TINY = ("--size", "10007", "--repetitions", "3")


@pytest.mark.parametrize(("ranks", "threads"), [(1, 1), (1, 3), (3, 2), (4, 1)])
def test_both_touches_are_right(kernel_stack, ranks, threads):
    document = kernel_stack.json(ranks, "daxpy", *TINY, threads=threads)
    figures = {(item["metric"], item["params"]["touch"]): item for item in document["measurements"]}
    assert {touch for _, touch in figures} == {"thread", "master"}
    ratio = figures["first_touch_ratio", "thread"]["value"]
    bandwidths = [figures["bandwidth", touch]["value"] for touch in ("thread", "master")]
    assert ratio == pytest.approx(bandwidths[0] / bandwidths[1])
    assert figures["rate", "thread"]["value"] == pytest.approx(bandwidths[0] / 12 * 1e-3)
    assert figures["rate", "thread"]["params"]["working_set"] == 16 * 10007 * ranks


@pytest.mark.parametrize("touch", ["thread", "master"])
def test_one_touch_alone_has_no_ratio(one_stack, touch):
    document = one_stack.json(1, "daxpy", *TINY, "--touch", touch)
    assert {item["params"]["touch"] for item in document["measurements"]} == {touch}
    assert {item["metric"] for item in document["measurements"]} == {"bandwidth", "rate"}
