"""The digests of pages in golden files: they leave nothing out, and differences are told in words."""

import copy
import json

import page_words
import pytest
import reports

from plumbline.records.model import convert
from plumbline.show.report import data


@pytest.fixture(scope="module")
def page():
    records = [convert(item) for item in reports.campaign()[:2]]
    document = data.document("local", records, [], (), campaign=reports.CAMPAIGN)
    return json.loads(json.dumps(document))


def leaves(value, path=()):
    """The place of each text, number and truth of a document."""
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(member, (*path, key))
    else:
        yield path


def test_each_change_of_a_page_changes_its_digest_and_is_told(page):
    digest = page_words.digest(page)
    places = list(leaves(page))
    assert len(places) > 900
    for path in places[::7]:
        changed = copy.deepcopy(page)
        holder = changed
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = "changed"
        assert page_words.digest(changed) != digest, path
        assert list(page_words.differences(page, changed)), path


def test_a_digest_has_titles_rows_and_ends_of_tables():
    table = {"is": "table", "caption": "Figures", "columns": [{"title": "name"}, {"title": "GB/s"}]}
    rows = [["copy", "1.0"], ["scale", "2.0"], ["triad", None]]
    section = {"is": "section", "title": "All", "pieces": [{**table, "rows": rows}]}
    lines = [line.rpartition(" #")[0] for line in page_words.digest({"sections": [section]})]
    assert lines[1:] == ["  section “All”", "    table “Figures”: 3 rows of (name | GB/s): copy | 1.0; triad | –"]


def test_differences_name_the_place_both_texts_and_new_pages(tmp_path):
    old = {"is": "table", "caption": "Figures", "rows": [["copy", "1.0"], ["add", "3.0"], ["scale", "2.0"]]}
    new = {**old, "rows": [["copy", "1.5"], ["scale", "2.0"], ["triad", "4.0"]]}
    assert list(page_words.differences({"sections": [old]}, {"sections": [new]})) == [
        "“Figures” [copy]: 1.0 → 1.5",
        "“Figures”: gone: add 3.0",
        "“Figures”: new: triad 4.0",
    ]
    for folder, names in (("old", "ab"), ("new", "bc")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.html").write_text('{"title": "same"}')
    lines = list(page_words.of_folders(tmp_path / "old", tmp_path / "new"))
    assert lines == ["a.html: the page is gone", "c.html: a new page"]
