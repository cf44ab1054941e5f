"""What a page that was published shows: its data, which are compressed in it."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any


def shown(file: Path) -> Any:
    """The data of a page."""
    text = file.read_text(encoding="utf-8")
    packed = text.partition('<script type="application/gzip" id="data">')[2].partition("</script>")[0]
    return json.loads(gzip.decompress(base64.b64decode(packed, validate=True)))
