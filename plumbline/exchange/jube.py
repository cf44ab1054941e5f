"""Figures as a finished benchmark of JUBE, so that ``jube result`` shows, sorts and hands on our figures.

Its documents are those that JUBE 2.5 leaves in the folder of a run: what the benchmark is, its work packages with their
parameters (what a figure is of), and the analysis with the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from plumbline.base import files
from plumbline.base.terminal import NOT_XML
from plumbline.exchange.rows import Exported

PARAMETERS = (
    "time", "site", "partition", "nodes", "campaign", "stack", "mpi", "test", "variant", "placement", "figure", "unit",
    "better", "application", "commit", "id",
)  # fmt: skip
#: patterns, and how JUBE calls their types
VALUES = {"value": "float", "smallest": "float", "largest": "float", "launches": "int", "disturbed": "int"}
#: the one benchmark in the folder, and its parts
NUMBER, STEP, ANALYSER = "000000", "measured", "figures"
#: the benchmark: one step without a command, and a table of everything
_CONFIGURATION = "".join(
    [
        "<?xml version='1.0' encoding='UTF-8'?>\n",
        '<jube><benchmark name="plumbline" outpath=".."><parameterset name="of">',
        *(f'<parameter name="{name}" />' for name in PARAMETERS),
        '</parameterset><patternset name="values">',
        *(f'<pattern name="{name}" type="{kind}" />' for name, kind in VALUES.items()),
        f'</patternset><step name="{STEP}"><use>of</use></step>',
        f'<analyser name="{ANALYSER}"><use>values</use><analyse step="{STEP}" /></analyser>',
        f'<result><use>{ANALYSER}</use><table name="figures" style="csv" sort="time,test,variant,stack,figure">',
        *(f"<column>{name}</column>" for name in (*PARAMETERS, *VALUES)),
        "</table></result></benchmark></jube>",
    ]
)


def write(found: Sequence[Exported], target: Path) -> None:
    """Make the folder ``target`` anew: a work package for each of the figures ``found``."""
    with files.writing("the figures", target):
        files.make_anew(target)
        folder = target / NUMBER
        folder.mkdir()
        (folder / "configuration.xml").write_text(_CONFIGURATION, encoding="utf-8")
        for name, made in (
            ("workpackages", _packages(found)),
            ("analyse", _analysis(found)),
        ):
            ElementTree.ElementTree(made).write(folder / f"{name}.xml", encoding="UTF-8", xml_declaration=True)


def _packages(kept: Sequence[Exported]) -> Element:
    root = Element("workpackages")
    for number, one in enumerate(kept):
        package = SubElement(root, "workpackage", id=str(number))
        SubElement(package, "step", iteration="0", cycle="0").text = STEP
        parameters = SubElement(package, "parameterset")
        for name in PARAMETERS:
            # a selection is taken as it stands: no list is made of it at commas, and no $NAME is replaced
            parameter = SubElement(parameters, "parameter", name=name)
            SubElement(parameter, "selection").text = NOT_XML.sub("\ufffd", getattr(one, name) or "")
    return root


def _analysis(kept: Sequence[Exported]) -> Element:
    root = Element("analyse")
    step = SubElement(SubElement(root, "analyser", name=ANALYSER), "step", name=STEP)
    for number, one in enumerate(kept):
        package = SubElement(step, "workpackage", id=str(number))
        for name, kind in VALUES.items():
            SubElement(package, "pattern", name=name, type=kind).text = repr(getattr(one, name))
    return root
