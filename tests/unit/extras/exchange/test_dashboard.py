"""docs/grafana.json: it asks for metrics and labels that ``plumb export`` writes, and Prometheus answers."""

import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import processes
import pytest
from samples import launch, record

from plumbline.base import paths, units
from plumbline.extras.exchange import rows
from plumbline.records.model import convert

DASHBOARD = json.loads((paths.root() / "docs/grafana.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
LEGENDS = [target["legendFormat"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
#: of Grafana itself: a query per choice, and the width of a point
VARIABLES = [item for item in DASHBOARD["templating"]["list"] if item["type"] == "query"]
CHOICES = {item["name"]: re.fullmatch(r"label_values\((\{.*\}), (\w+)\)", item["query"]) for item in VARIABLES}


def exported():
    """A figure in every unit, of two days."""
    found = []
    for day in (1, 2):
        for number, unit in enumerate(units.UNITS):
            item = record(id=f"{number:011x}{day}", session=f"s{day}", time=f"2026-01-{day:02d}T01:00:00.000Z")
            item["launches"] = [launch(0, 1.0)]
            item["figures"][0] |= {"unit": unit, "value": 10.0 * day, "samples": [10.0 * day] * 3, "name": f"f{number}"}
            found.append(convert(item).row())
    return rows.as_openmetrics(rows.figures(found))


def labels_of(selector):
    return set(re.findall(r'(\w+)=~?"', selector)) - {"__name__"}


def test_there_is_a_panel_for_each_metric_that_is_written():
    written = set(re.findall(r"^# TYPE (\S+)", exported(), re.MULTILINE))
    asked = [re.search(r"plumbline_\w+", expression).group() for expression in EXPRESSIONS]
    assert sorted(asked) == sorted(written)
    assert written == {f"{rows.PREFIX}_{unit}" for unit, _ in rows.BASE.values()}


def test_its_labels_are_those_that_are_written():
    (line, *_) = [line for line in exported().splitlines() if not line.startswith("#")]
    written = labels_of(line)
    assert written == set(rows.LABELS)
    for expression in EXPRESSIONS:
        assert labels_of(expression) == set(CHOICES)
    for name, query in CHOICES.items():
        assert query.group(2) == name
        assert {name} | labels_of(query.group(1)) <= written
    for legend in LEGENDS:
        assert set(re.findall(r"{{(\w+)}}", legend)) <= written


def test_choices_are_made_before_they_are_used():
    before = set()
    for name, query in CHOICES.items():
        assert set(re.findall(r"\$(\w+)", query.group(1))) == before
        before.add(name)


@pytest.fixture
def prometheus(tmp_path):
    """Asks a server that holds the export, which ``promtool`` made into blocks."""
    for program in ("prometheus", "promtool"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install prometheus")
    (tmp_path / "figures.txt").write_text(exported())
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "figures.txt", "data"]
    subprocess.run(blocks, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    (tmp_path / "p.yml").write_text("{}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["--config.file=p.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=100y"]

    def ask(path, **query):
        with urllib.request.urlopen(f"http://{place}/{path}?{urllib.parse.urlencode(query)}", timeout=60) as answer:
            return json.load(answer)["data"]

    def answers():
        try:
            return ask("api/v1/status/buildinfo")
        except OSError:
            return None

    with (tmp_path / "log").open("wb") as log:
        words = ["prometheus", *options, f"--web.listen-address={place}"]
        server = subprocess.Popen(words, cwd=tmp_path, stdout=log, stderr=log)
    try:
        processes.wait_until(answers, (tmp_path / "log").read_text, of=server)
        yield ask
    finally:
        server.kill()
        server.wait()


def test_prometheus_answers_every_query(prometheus):
    span = {"start": 1767225600, "end": 1767225600 + 2 * 86400, "step": 6 * 3600}  # what Grafana asks for two days
    shown = set()
    for expression in EXPRESSIONS:
        query = re.sub(r"\$__interval", "6h", re.sub(r'"\$\w+"', '".*"', expression))
        for series in prometheus("api/v1/query_range", query=query, **span)["result"]:
            assert len(series["values"]) == 2  # a point of each day, and nothing where nothing was measured
            shown.add(series["metric"]["figure"])
    assert shown == {f"f{number}" for number in range(len(units.UNITS))}
    for query in CHOICES.values():
        selector = re.sub(r'"\$\w+"', '".*"', query.group(1))
        assert prometheus(f"api/v1/label/{query.group(2)}/values", **{"match[]": selector}, **span)
