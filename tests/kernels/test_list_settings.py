"""Settings of the installed libraries: the curated ones are there, with the values that are worth a try."""

import re

from msgspec.structs import replace

from plumbline.extras.tune import knobs

#: a range of numbers
NUMBERS = re.compile(r"(\d+)-(\d+)$")


def test_every_curated_setting_is_one_of_the_library(each_stack):
    found = knobs.inventory(each_stack.manifest)
    assert found.lacking == ()
    assert len(found.settings) > 400


def test_the_library_knows_every_value_that_is_worth_a_try(each_stack):
    found = knobs.inventory(each_stack.manifest)
    for knob in found.knobs:
        allowed = found.settings[knob.name].allowed
        span = NUMBERS.match(allowed)
        known = {word for item in allowed.split(", ") for word in item.split()}
        if span:
            known = {str(number) for number in range(int(span[1]), int(span[2]) + 1)}
        assert not allowed or set(knob.values) <= known, knob.name


def test_settings_of_the_stack_are_those_of_now(each_stack):
    knob = next(knob for knob in knobs.inventory(each_stack.manifest).knobs if knob.values[0].isdigit())
    stack = replace(each_stack.manifest, settings={knob.name: knob.values[0]})
    assert knobs.inventory(stack).settings[knob.name].now == knob.values[0]
