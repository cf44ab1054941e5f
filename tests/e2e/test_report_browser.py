"""The report in a real browser, from a file: what people see, hover, press and copy."""

import json
import math
import statistics

import chromium
import msgspec
import pieces
import pytest
import reports
from chromium import SERIES, draw_all, sideways
from playwright.sync_api import expect
from samples import launch, record

from plumbline.base import paths, units
from plumbline.extras.profiles import section as profiled
from plumbline.host import devices
from plumbline.records.model import convert
from plumbline.show import pages
from plumbline.show.report import data

pytestmark = chromium.needed
SECTIONS = (
    "answer", "findings", "stacks", "overview", "left-out", "placements", "stream", "curves", "collectives", "hybrids",
    "labs", "pairs", "profiles", "work", "launches", "history", "devices", "circumstances",
)  # fmt: skip
DATA = "JSON.parse(document.getElementById('data').textContent)"
#: the points of each series of each picture; caption and cells, without blanks, of each table
POINTS = f"""[...document.querySelectorAll('main .drawing')].map((element) =>
    {SERIES}.map((one) => one.data.map((point) => point.value)))"""
TABLES = """[...document.querySelectorAll('main table')].map((table) => [table.caption?.textContent ?? '',
    [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent.replace(/\\s/g, '')))])"""
#: how many pixels of a picture are not transparent, and in how many colours; the library may draw in several layers
INK = """drawing => {
    const seen = new Set();
    let count = 0;
    for (const canvas of drawing.querySelectorAll('canvas')) {
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
        copy.drawImage(canvas, 0, 0);
        const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
        for (let i = 0; i < data.length; i += 4) {
            if (data[i + 3]) { count++; seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); }
        }
    }
    return [count, seen.size];
}"""


def render(folder, records, past=(), outcome=None, damages=(), profiles=()):
    rows = [convert(item).row() for item in past]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiled, "stored", lambda _: list(profiles))
        document = data.document(
            "local", [convert(item) for item in records], rows, campaign=reports.CAMPAIGN, ended=outcome, older=(3, 2),
            damages=damages,
        )  # fmt: skip
    file = folder / "report.html"
    file.write_text(pages.render(document), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def campaign():
    return reports.campaign()


@pytest.fixture(scope="module")
def report(tmp_path_factory, campaign):
    cases = [{"state": "SKIP", "case": reports.HOSTILE, "reason": "no two cores share a core"}]
    outcome = {"profile": "quick", "cases": cases}
    return render(
        tmp_path_factory.mktemp("report"), campaign, reports.history(), outcome, ["a.jsonl:3: truncated"],
        [reports.ring()],
    )  # fmt: skip


@pytest.fixture(scope="module")
def tab(browser, report):
    """The report, for tests that only look at it."""
    with chromium.visits(browser) as visit:
        yield visit(report)


def shown(value, unit):
    return list(units.human(value, unit))


def usable(item):
    return item["verified"] and not item["reasons"]


def test_all_sections_are_there_and_nothing_hostile_ran(tab):
    for name in SECTIONS:
        expect(tab.locator(f"section#{name} h2")).to_be_visible()
    draw_all(tab)
    assert tab.evaluate("window.broken") is None
    assert tab.locator("img").count() == 0
    expect(tab.locator("#left-out")).to_contain_text(reports.HOSTILE.replace("\u2028", " ")[:40])
    expect(tab.locator("#left-out")).to_contain_text("no two cores share a core")
    expect(tab.locator("#left-out")).to_contain_text("a.jsonl:3: truncated")
    expect(tab.locator("#left-out")).to_contain_text("3 older records of the campaign, 2 of them not valid")


def test_findings_and_stacks_come_first_and_open_their_records(visit, report, campaign):
    tab = visit(report)
    headings = tab.locator("main h2").all_inner_texts()
    assert headings[:3] == ["Is this machine fine?", "Findings", "Stacks side by side"]
    shown = tab.locator("#findings li").all_inner_texts()
    assert any("not valid" in text for text in shown)
    assert any("times apart" in text for text in shown)
    tab.locator("#findings button").first.click()
    expect(tab.locator("#details")).to_be_visible()
    tab.keyboard.press("Escape")
    heads = tab.locator("#stacks thead th").all_inner_texts()
    assert heads[:3] == ["test", "placement", "figure"]
    assert heads[-len(reports.STACKS) :] == list(reports.STACKS)
    assert tab.locator("#stacks tbody tr").count() > 0
    assert tab.locator("#stacks .glyph[title=best]").count() > 0


def test_the_policy_holds_against_code_and_network(browser, report):
    """The guard, broken on purpose: what would run or send is stopped, and the browser says so."""
    assert chromium.stopped(browser, report, "img") == [["connect-src", "img-src", "script-src-elem"], None]


def test_overview_shows_the_figures_of_the_records(visit, report, campaign):
    tab = visit(report)
    tab.locator("#overview").get_by_label("every figure").check()
    cells = tab.locator("#variants td.median[data-value]").evaluate_all(
        """cells => cells.map((cell) => [cell.closest('tr').querySelector('.opener').dataset.record,
            cell.previousSibling.textContent, cell.dataset.value, cell.textContent, cell.nextSibling.textContent])"""
    )
    expected = [
        [item["id"], figure["name"], figure["value"], *shown(figure["value"], figure["unit"])]
        for item in campaign
        if usable(item)
        for figure in item["figures"]
    ]
    found = [[name, figure, float(value), *text] for name, figure, value, *text in cells]
    assert sorted(found) == sorted(expected)
    first = [row.split("\n")[0].strip() for row in tab.locator("#variants tbody tr").all_inner_texts()[:5]]
    assert [text.split("\t")[0].split()[-1] for text in first] == ["invalid", "invalid", "invalid", "below", "above"]


def test_no_section_says_true_or_false(tab):
    for section in tab.locator("#main section").all():
        words = section.inner_text().split()
        assert not {"true", "false"} & set(words), section.get_attribute("id")


def test_tiles_count_what_there_is(tab, campaign):
    tiles = dict(tile.split("\n")[::-1] for tile in tab.locator(".tile").all_inner_texts())
    launches = [one for item in campaign for one in item["launches"]]
    assert int(tiles["variants"]) == len(campaign)
    assert int(tiles["launches"]) == len(launches)
    assert int(tiles["disturbed"]) == sum(one["disturbed"] for one in launches)
    assert tiles["invalid"].endswith("3")


def chosen(piece):
    """A piece of the page's data, with the first option alone of each choice, as it is shown first."""
    if isinstance(piece, dict):
        choice = piece.get("is") == "choice"
        return chosen(piece["options"][0][1]) if choice else {key: chosen(value) for key, value in piece.items()}
    return [chosen(one) for one in piece] if isinstance(piece, list) else piece


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A report of what the campaign has none of: collectives, hybrid codes, joules and devices."""
    item = reports.solver("pure", "core", 1, [1000.0, 1001.0, 1002.0])
    known = devices.load(paths.root() / "site-configs/comet/topology/gpu-k80.xml")
    item["host"] = {**item["host"], "hostname": "node1", "devices": msgspec.to_builtins(known)}
    for number, one in enumerate(item["launches"]):
        one |= {"energy_j": {"package-0": 100.0 + number}, "work": {"flop": 2e9, "bytes": 0, "missing": "in a test"}}
    fast = reports.solver("vector", "node", 8, [1300.0 + step for step in range(7)])
    return render(tmp_path_factory.mktemp("others"), [*reports.collectives(), item, fast])


@pytest.mark.parametrize("page", ["report", pytest.param("others", marks=pytest.mark.long)])
def test_it_shows_what_the_page_holds(visit, request, page):
    """Every point of every picture, every cell of every table; unit tests hold the page's data against the records."""
    tab = visit(request.getfixturevalue(page))
    draw_all(tab)
    sections = chosen(tab.evaluate(DATA)["sections"])
    for chart, drawn in zip(pieces.blocks(sections, "chart"), tab.evaluate(POINTS), strict=True):
        series = chart.get("series", [chart])
        for one, points in zip(series, drawn[: len(series)], strict=True):  # lines of levels may come behind
            expected = [point[1 : 1 + len(seen)] for point, seen in zip(one["points"], points, strict=True)]
            assert points == expected, chart["title"]
    tables = dict(tab.evaluate(TABLES))
    for table in pieces.blocks(sections, "table"):
        for row, cells in zip(table["rows"], tables[table["caption"]], strict=True):
            whole = [not pieces.blocks(piece, "folded") for piece in row]  # what is folded has another text
            texts = ["".join(pieces.text(piece).split()) for piece in row]
            assert [cell for cell, is_whole in zip(cells, whole, strict=True) if is_whole] == [
                text for text, is_whole in zip(texts, whole, strict=True) if is_whole
            ]


def test_numbers_are_rounded_as_elsewhere(visit, tmp_path):
    """Half way between two numbers goes to the even one, in the page as in the terminal."""
    values = (0.0625, 0.1875, 12.125, 12.375, 100.25, 100.75, 2500.5, 2501.5, 80.5, 1e-9, 999.96, 123456.789)
    items = []
    for number, value in enumerate(values):
        item = record(id=f"{number:012x}")
        item["figures"][0] |= {"value": value, "unit": "us", "samples": [value] * 3}
        items.append(item)
    tab = visit(render(tmp_path, items))
    cells = tab.locator("#variants td.median")
    texts = cells.evaluate_all("all => all.map((cell) => [cell.dataset.value, cell.textContent])")
    assert {float(value): text for value, text in texts} == {
        figure.value: figure.shown[0] for figure in (convert(item).figures[0] for item in items)
    }


def test_search_and_filters(visit, report, campaign):
    tab = visit(report)
    rows = tab.locator("#variants tbody tr")
    expect(rows).to_have_count(len(campaign))
    tab.get_by_label("Search").first.fill("pingpong xsocket mpich")
    expect(rows).to_have_count(1)
    tab.get_by_label("Search").first.fill("")
    tab.get_by_role("button", name="below 1").click()
    expect(rows).to_have_count(1)
    tab.get_by_role("button", name="invalid 3").click()
    expect(rows).to_have_count(4)
    tab.get_by_role("button", name="below 1").click()
    tab.get_by_role("button", name="invalid 3").click()
    tab.locator("#overview").get_by_label("Test").select_option("pairs")
    expect(rows).to_have_count(1)
    expect(tab.locator(".count")).to_have_text(f"1 of {len(campaign)} variants shown")


def test_sorting_by_a_column_of_numbers(visit, report):
    tab = visit(report)
    head = tab.locator("#variants th", has_text="median")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    texts = tab.locator("#variants td.median[data-value]").evaluate_all(
        "cells => cells.map((one) => one.dataset.value)"
    )
    assert texts == sorted(texts, key=float, reverse=True)


def test_the_median_of_an_even_number_of_launches(visit, tmp_path):
    launches = []
    for order, value in enumerate((10.0, 1.0, 3.0, 2.0)):
        rows = [reports.measured("latency", value, "us", "lower", bytes=size) for size in (1, 2)]
        launches.append(launch(order, 1.0, measurements=rows))
    tab = visit(render(tmp_path, [record(launches=launches)]))
    draw_all(tab)
    points = tab.locator("#curves .drawing").evaluate(f"element => {SERIES}[0].data.map((point) => point.value)")
    assert points == [[1, 2.5], [2, 2.5]]
    ends = f"element => {SERIES}[0].markLine.data.map((line) => line.map((end) => end.coord))"
    assert tab.locator("#curves .drawing").evaluate(ends) == [[[1, 1.0], [1, 10.0]], [[2, 1.0], [2, 10.0]]]


def test_curves_as_a_table_and_on_hover(visit, report, campaign):
    tab = visit(report)
    tab.locator("#curves").scroll_into_view_if_needed()
    figure = tab.locator("#curves figure").first
    figure.get_by_text("Values as a table").click()
    expect(figure.locator("tr")).to_have_count(25)
    head, *rows = figure.locator("tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert head[1] == "intelmpi, pair:l3 1x2 local us"
    item = next(item for item in campaign if item["variant"]["test"] == "imb_pair")
    every = [[row for row in one["measurements"] if row["metric"] == "latency"] for one in item["launches"]]
    times = [statistics.median(row["value"] for row in of_size) for of_size in zip(*every, strict=True)]
    assert [row[1] for row in rows] == [shown(time, "us")[0] for time in times]
    assert [row[0] for row in rows][:1] + [row[0] for row in rows][-1:] == ["0 B", "4 MiB"]
    draw_all(tab)
    box = figure.locator(".drawing").bounding_box()
    tab.mouse.move(box["x"] + 300, box["y"] + 120)
    expect(tab.locator(".hover").first).to_contain_text("intelmpi, pair:l3 1x2 local")
    expect(tab.locator(".hover").first).to_contain_text(" us (")


def test_no_picture_is_blank(tab):
    draw_all(tab)
    for number, drawing in enumerate(tab.locator(".drawing").all()):
        count, colours = drawing.evaluate(INK)
        assert count > 1000, number
        assert colours > 10, number


def test_hiding_every_stack_empties_the_curves(visit, report):
    """The test above sees a picture that shows nothing."""
    tab = visit(report)
    draw_all(tab)
    drawing = tab.locator("#curves .drawing").first
    before = drawing.evaluate(INK)[1]
    for name in reports.STACKS:
        tab.locator("#curves").get_by_role("button", name=name).click()
    assert drawing.evaluate(INK)[1] < before / 2


def test_the_drawer_tells_all_about_a_record(visit, report, campaign):
    tab = visit(report)
    item = next(item for item in campaign if item["verdict"] == "below")
    tab.locator("#variants tr", has_text="below").get_by_role("button").click()
    drawer = tab.get_by_role("dialog")
    text = drawer.inner_text()
    figure = item["figures"][0]
    for words in (
        " ".join(shown(figure["value"], "MB/s")),
        "90.00 GB/s",
        "calibrated, local/references/stream.yaml",
        f"{figure['limit']['percent']:.1f} % of {figure['limit']['method']} (76.80 GB/s)",
        "disturbed: steal 2.0 % of the time",
        *(str(value) for value in figure["samples"]),
        f"plumb reproduce {item['id']}",
        "PLUMB_SEED=1 \\\nmpirun -n 1",
        "performance",
        item["stack"]["sha256"][:12],
        "memory bound to node 0",
    ):
        assert words in text or words.replace(" ", "\t") in text, words
    draw_all(tab)
    assert drawer.locator(".drawing").evaluate(INK)[0] > 500
    assert tab.url.endswith(f"#record-{item['id']}")


def test_the_drawer_of_a_record_that_is_not_verified(visit, report, campaign):
    item = next(item for item in campaign if not item["verified"])
    tab = visit(report, fragment=f"#record-{item['id']}")
    drawer = tab.get_by_role("dialog")
    expect(drawer).to_contain_text("launch 0: rank 1 on node1 left no witness")
    expect(drawer.get_by_role("row", name="failed")).to_contain_text("exit status 1")
    drawer.get_by_text("End of the output of launch 0").click()
    expect(drawer).to_contain_text("stream: out of memory")


def test_the_command_is_copied(visit, report, campaign):
    item = next(item for item in campaign if item["verdict"] == "below")
    tab = visit(report, fragment=f"#record-{item['id']}", permissions=["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="Copy: plumb reproduce").click()
    expect(tab.get_by_role("button", name="Copy: plumb reproduce")).to_have_text("Copied")
    assert tab.evaluate("navigator.clipboard.readText()") == f"plumb reproduce {item['id']}"


def test_the_keyboard_is_enough(visit, report):
    tab = visit(report)
    tab.keyboard.press("Tab")
    expect(tab.get_by_text("Skip to the content")).to_be_focused()
    opener = tab.locator("#variants .opener").nth(3)
    opener.focus()
    tab.keyboard.press("Tab")
    expect(tab.locator("#variants .opener").nth(4)).to_be_focused()
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    tab.keyboard.press("Enter")
    drawer = tab.get_by_role("dialog")
    expect(drawer).to_be_visible()
    assert drawer.evaluate("dialog => dialog.contains(document.activeElement)")
    for _ in range(12):  # the page behind cannot be reached
        tab.keyboard.press("Tab")
        assert tab.evaluate(
            "document.activeElement === document.body || document.activeElement.closest('dialog') !== null"
        )
    tab.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    expect(tab.locator("#variants .opener").nth(4)).to_be_focused()
    toggle = tab.get_by_role("button", name="below 1")
    toggle.focus()
    tab.keyboard.press("Space")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    expect(tab.locator("#variants tbody tr")).to_have_count(1)


def test_only_what_scrolls_stops_the_keyboard(visit, report):
    for width in (1280, 800):
        tab = visit(report, width=width)
        tab.wait_for_function(
            """[...document.querySelectorAll('.scroll')].every(
                (one) => (one.tabIndex === 0) === (one.scrollWidth > one.clientWidth))"""
        )
    assert tab.locator(".scroll[tabindex]").count() > 0


def test_what_is_pressed_or_seen_has_a_name(tab):
    nameless = tab.evaluate("""() => {
        const named = (element) => element.getAttribute('aria-label') || element.closest('label')
            || (element.tagName === 'TABLE' && element.querySelector('caption'))
            || (!['SELECT', 'TABLE'].includes(element.tagName) && element.textContent.trim());
        return [...document.querySelectorAll('button, select, input, a, table, [role=img], [role=region]')]
            .filter((element) => !named(element)).map((element) => element.outerHTML.slice(0, 100));
    }""")
    assert nameless == []
    assert tab.evaluate("document.querySelectorAll('.drawing:not([aria-label])').length") == 0
    assert tab.locator("figure").count() == tab.locator("figure summary", has_text="Values as a table").count()


def test_a_phone_shows_all_values_without_scrolling_sideways(visit, report):
    tab = visit(report, width=420)
    assert sideways(tab) == []
    tab.locator("#variants .opener").nth(3).click()
    expect(tab.get_by_role("dialog")).to_be_visible()
    assert sideways(tab) == []


@pytest.mark.parametrize("width", [360, pytest.param(768, marks=pytest.mark.long)])
def test_a_phone_never_scrolls_sideways(visit, report, width):
    tab = visit(report, width=width)
    for folded in tab.locator("section > details.part").all():
        folded.evaluate("details => { details.open = true; }")
    draw_all(tab)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    tab.locator("#variants .opener").nth(3).click()
    assert tab.locator(".drawer").evaluate("drawer => drawer.scrollWidth <= drawer.clientWidth")
    assert tab.get_by_role("dialog").evaluate("dialog => dialog.getBoundingClientRect().width") <= width


def test_a_phone_shows_the_answer_first_and_opens_sections_by_their_links(visit, report):
    tab = visit(report, width=420)
    screens = tab.evaluate("document.documentElement.scrollHeight / innerHeight")
    assert screens <= 12
    top = tab.locator("#answer").evaluate("section => section.getBoundingClientRect().top")
    assert top < tab.viewport_size["height"]
    expect(tab.locator("#variants")).to_be_hidden()
    tab.locator("nav a", has_text="Overview").click()
    expect(tab.locator("#variants")).to_be_visible()


def test_paper_shows_all_of_every_table_in_light_colours(visit, report):
    """A4 less its margins is 703 pixels wide; a chart is drawn for it by the browser's own event."""
    tab = visit(report, width=703, color_scheme="dark")
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    wide = "one => one.getBoundingClientRect().right > innerWidth + 1"
    assert tab.evaluate(f"[...document.querySelectorAll('main td, main th')].filter({wide}).length") == 0
    expect(tab.locator("nav")).to_be_hidden()
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"


def brightness(tab, name):
    text = tab.evaluate(f"getComputedStyle(document.body).{name}")
    return sum(int(part) for part in text.partition("(")[2].rstrip(")").split(",")[:3]) / 3


def contrast(tab, selector):
    """Of an element's colour against the page, by WCAG 2."""
    colours = tab.evaluate(
        """selector => {
            const ink = getComputedStyle(document.querySelector(selector)).color;
            const paper = getComputedStyle(document.body).backgroundColor;
            return [ink, paper].map((text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number));
        }""",
        selector,
    )
    linear = [
        [c / 255 / 12.92 if c / 255 <= 0.03928 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb] for rgb in colours
    ]
    bright, dim = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in linear), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize(
    ("scheme", "other"), [("dark", "light"), pytest.param("light", "dark", marks=pytest.mark.long)]
)
def test_dark_and_light_are_readable(visit, report, scheme, other):
    tab = visit(report, color_scheme=scheme)
    draw_all(tab)

    def is_dark():
        return brightness(tab, "backgroundColor") < 60 and brightness(tab, "color") > 180

    assert is_dark() == (scheme == "dark")
    for selector in (".about", ".opener", ".badge.invalid", ".badge.above", ".badge.unreferenced", "thead th", ".why"):
        assert contrast(tab, selector) >= 4.5, selector
    canvas = tab.locator("#curves .drawing canvas").first
    before = canvas.evaluate("canvas => canvas.toDataURL()")
    button = tab.get_by_role("button", name="Theme")
    while button.inner_text() != f"Theme: {other}":
        button.click()
    assert is_dark() == (other == "dark")
    assert canvas.evaluate("canvas => canvas.toDataURL()") != before


def test_a_campaign_without_anything_valid(visit, tmp_path):
    bad = record(verified=False, verdict="invalid", figures=[], launches=[], reasons=["no launch finished"])
    tab = visit(render(tmp_path, [bad]))
    expect(tab.locator("#left-out")).to_contain_text("no launch finished")
    for name in ("stream", "curves", "collectives", "pairs"):
        expect(tab.locator(f"section#{name}")).to_contain_text("This gives it: reframe -c reframe-tests -r")
    expect(tab.locator("#history")).to_contain_text("No figure was measured in two sessions yet")


def test_numbers_that_are_none(visit, tmp_path):
    item = record(verdict="invalid", reasons=["triad is not a finite number"])
    item["figures"][0] |= {"value": math.nan, "samples": [math.nan, math.inf, 1.0]}
    item["figures"][0]["limit"] = {"value": 1.0, "unit": "MB/s", "method": "m", "percent": math.nan}
    tab = visit(render(tmp_path, [item, record(id="f" * 12, launches=[launch(0, 1.0)])]))
    tab.locator("#variants .opener").first.click()
    expect(tab.get_by_role("dialog")).to_contain_text("nan")


def test_data_is_what_the_page_holds(tab, report):
    """What is embedded is what the browser parses."""
    parsed = tab.evaluate(DATA)
    text = report.read_text(encoding="utf-8")
    assert parsed == json.loads(text.partition('id="data">')[2].partition("</script>")[0])
