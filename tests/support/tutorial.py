"""The steps of docs/tutorial.md, as a reader types them."""

import re

from plumbline.base import paths

#: name -> shell lines
STEPS: dict[str, str] = dict(
    re.findall(
        r"^<!-- step: (\w+) -->\n```sh\n(.*?)^```",
        (paths.root() / "docs" / "tutorial.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)
