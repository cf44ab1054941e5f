"""The comment under a merge request: posted, replaced, refused, and never a token in what is printed."""

import pytest
from request_host import TOKEN, github, gitlab

from plumbline.extras.ci import comment


@pytest.fixture
def post(tmp_path, monkeypatch, capsys):
    def run(environment, text="**PASS**\n"):
        for name in ("PLUMB_COMMENT_TOKEN", "GITHUB_TOKEN", "CI_MERGE_REQUEST_IID"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / comment.FILE
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        status = comment.main(tmp_path)
        said = "".join(capsys.readouterr())
        assert TOKEN not in said
        return status, said

    return run


@pytest.mark.parametrize(("where", "path", "header"), [
    (gitlab, "/api/v4/projects/7/merge_requests/12/notes", ("PRIVATE-TOKEN", TOKEN)),
    (github, "/repos/us/suite/issues/12/comments", ("Authorization", f"Bearer {TOKEN}")),
])  # fmt: skip
def test_a_comment_is_posted(host, post, where, path, header):
    assert post(where(host)) == (0, "plumb ci: comment posted\n")
    (_, listed, _, _), (method, asked, headers, body) = host.asked
    assert (listed.partition("?")[0], method, asked) == (path, "POST", path)
    assert {name.lower(): value for name, value in headers.items()}[header[0].lower()] == header[1]
    assert body == {"body": f"{comment.MARK}\n**PASS**\n"}


@pytest.mark.parametrize(("where", "method", "path"), [
    (gitlab, "PUT", "/api/v4/projects/7/merge_requests/12/notes/5"),
    (github, "PATCH", "/repos/us/suite/issues/comments/5"),
])  # fmt: skip
def test_an_older_comment_is_replaced(host, post, where, method, path):
    host.comments = [{"id": 4, "body": "hello"}, {"id": 5, "body": f"{comment.MARK}\nold"}]
    assert post(where(host)) == (0, "plumb ci: comment replaced\n")
    assert host.asked[1][:2] == (method, path)


def test_without_a_token_nothing_is_sent(host, post):
    assert post({}) == (0, "plumb ci: no token, so no comment\n")
    assert host.asked == []


@pytest.mark.parametrize("status", [401, 404, 500])
def test_a_refusal_is_an_error(host, post, status):
    host.status = status
    code, said = post(github(host))
    assert (code, f"status {status}" in said) == (3, True)


@pytest.mark.parametrize(("server", "words"), [("http://x.invalid", "https"), ("http://127.0.0.1:1", "no answer")])
def test_a_token_is_not_sent_in_the_clear_nor_to_nobody(host, post, server, words):
    code, said = post({**github(host), "GITHUB_API_URL": server})
    assert (code, words in said) == (3, True)


def test_a_redirect_does_not_get_the_token(host, post):
    host.redirect = f"http://127.0.0.1:{host.server_port}/elsewhere"
    code, said = post(github(host))
    assert (code, "status 302" in said) == (3, True)
    assert [path for _, path, _, _ in host.asked if "elsewhere" in path] == []


def test_comments_of_another_form_are_no_older_one(host, post):
    host.comments = ["text", {"body": f"{comment.MARK}\nwithout an id"}]
    assert post(github(host)) == (0, "plumb ci: comment posted\n")


def test_outside_a_merge_request(host, post):
    code, said = post({name: value for name, value in gitlab(host).items() if name != "CI_MERGE_REQUEST_IID"})
    assert (code, "CI_MERGE_REQUEST_IID is not set" in said) == (3, True)


def test_a_long_table_is_cut(host, post):
    assert post(github(host), "| row |\n" * 20_000)[0] == 0
    body = host.asked[1][3]["body"]
    assert len(body) < comment.LONGEST + 100
    assert body.endswith("artefacts.\n")


@pytest.mark.parametrize(("text", "posted"), [
    ("@all | (@x) é@y openmpi@0123", "@\u2060all | (@\u2060x) é@\u2060y openmpi@0123"),
    ("/merge\n  /close\na / b, c/d", "\u2060/merge\n  \u2060/close\na / b, c/d"),
    ("a\u202eb\u200bc\rd\x1b[2J", "a b c d [2J"),
    ("| 5 % | `openmpi` |\n", "| 5 % | `openmpi` |\n"),
])  # fmt: skip
def test_no_host_acts_on_the_text(text, posted):
    assert comment.tame(text) == posted


def test_no_file(tmp_path, capsys, host, monkeypatch):
    for name, value in github(host).items():
        monkeypatch.setenv(name, value)
    assert comment.main(tmp_path) == 3
    assert capsys.readouterr().err == "plumb ci: cannot read plumb-ci/gate.md: No such file or directory\n"
