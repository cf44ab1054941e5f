"""Figures as a finished benchmark of JUBE, so that ``jube result`` shows, sorts and hands on our figures.

Its documents are those that JUBE 2.5 leaves in the folder of a run: what the benchmark is, its work packages with their
parameters (what a figure is of), and the analysis with the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from plumbline import files
from plumbline.exchange.rows import Exported
from plumbline.judge.statement import NOT_XML

PARAMETERS = (
    "time", "site", "partition", "nodes", "campaign", "stack", "mpi", "test", "variant", "placement", "figure", "unit",
    "better", "id",
)  # fmt: skip
#: patterns, and how JUBE calls their types
VALUES = {"value": "float", "smallest": "float", "largest": "float", "launches": "int", "disturbed": "int"}
#: the one benchmark in the folder, and its parts
NUMBER, STEP, ANALYSER = "000000", "measured", "figures"


def write(found: Sequence[Exported], target: Path) -> None:
    """Make the folder ``target`` anew: a work package for each of the figures ``found``."""
    with files.writing("the figures", target):
        files.make_anew(target)
        folder = target / NUMBER
        folder.mkdir()
        for name, made in (
            ("configuration", _configuration()),
            ("workpackages", _packages(found)),
            ("analyse", _analysis(found)),
        ):
            ElementTree.ElementTree(made).write(folder / f"{name}.xml", encoding="UTF-8", xml_declaration=True)


def _configuration() -> Element:
    """The benchmark: one step without a command, and a table of everything."""
    root = Element("jube")
    benchmark = SubElement(root, "benchmark", name="plumbline", outpath="..")
    parameters = SubElement(benchmark, "parameterset", name="of")
    for name in PARAMETERS:
        SubElement(parameters, "parameter", name=name)
    patterns = SubElement(benchmark, "patternset", name="values")
    for name, kind in VALUES.items():
        SubElement(patterns, "pattern", name=name, type=kind)
    _texts(SubElement(benchmark, "step", name=STEP), "use", ["of"])
    analyser = SubElement(benchmark, "analyser", name=ANALYSER)
    _texts(analyser, "use", ["values"])
    SubElement(analyser, "analyse", step=STEP)
    result = SubElement(benchmark, "result")
    _texts(result, "use", [ANALYSER])
    table = SubElement(result, "table", name="figures", style="csv", sort="time,test,variant,stack,figure")
    _texts(table, "column", [*PARAMETERS, *VALUES])
    return root


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


def _texts(parent: Element, tag: str, texts: Iterable[str]) -> None:
    for text in texts:
        SubElement(parent, tag).text = text
