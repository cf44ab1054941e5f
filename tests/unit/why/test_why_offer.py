"""Which command a gate that failed ends with."""

import pytest
import samples

from plumbline.records import model
from plumbline.why import offer


def record(number, stack="openmpi", commit=None, **changes):
    state = {"application": {"name": "toy", "program": "p", "commit": commit}} if commit else {}
    made = samples.record(id=f"{number:012x}", variant=samples.variant(**state, **changes))
    made["stack"]["name"] = stack
    return model.convert(made)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({}, {"stack": "mpich"}, None),
        ({}, {"placement": "numa"}, None),
        ({}, {"stack": "mpich", "placement": "numa"}, "plumb why 000000000001 000000000002"),
        ({"settings": {"a": "1"}}, {"settings": {"a": "2", "b": "1"}}, "plumb why 000000000001 000000000002"),
        (
            {"commit": "1" * 40},
            {"commit": "2" * 40},
            f"plumb bisect {'1' * 40} {'2' * 40} --test 'stream_threads(%|$)'",
        ),
        ({"stack": "m@123"}, {"stack": "m@456"}, "plumb bisect 123 456 --test 'stream_threads(%|$)'"),
        ({"commit": "1" * 40}, {"commit": "2" * 40, "threads": 1}, "plumb why 000000000001 000000000002"),
    ],
)
def test_the_command_fits_what_differs(first, second, said):
    assert offer.command(record(1, **first), record(2, **second)) == said
