"""``handover``: a cache line between two threads, each turn taken once."""


def test_half_a_round_trip_is_measured(kernel_stack):
    document = kernel_stack.json(1, "handover", "--repetitions", "3", threads=2)
    found = {item["metric"]: item for item in document["measurements"]}
    assert 0 < found["time"]["value"] <= found["mean"]["value"]
    assert {item["unit"] for item in found.values()} == {"ns"}
    assert found["time"]["samples"] == 2  # the first batch is not counted
