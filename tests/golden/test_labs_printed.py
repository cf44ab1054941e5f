"""Labs: what each prints is there."""

import pytest

from plumbline.extras.labs import evidence, model

LABS = model.every()


def planned(name: str) -> bool:
    """Whether lab ``name`` prints plans only: what it has to measure first is in tests/e2e/test_labs_real.py."""
    return not any(one.measures for one in LABS[name].prints)


@pytest.mark.parametrize("name", [name for name, lab in LABS.items() if lab.prints and planned(name)])
def test_what_the_documents_say_is_in_the_output_of_each_command(name: str) -> None:
    """Plans and counts are facts of any machine."""
    outputs = [evidence.run_printed(one) for one in LABS[name].prints if model.RECORD not in one.command]
    assert [finding for output in outputs for finding in output.findings if finding.state != evidence.HOLDS] == []
