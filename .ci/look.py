"""Look at the server that `make up` started: `python look.py OUTPUT_OF_MAKE_UP`."""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

said = dict(line.split(None, 1) for line in Path(sys.argv[1]).read_text().splitlines() if len(line.split(None, 1)) == 2)
base = re.sub(r"/#.*", "", said["console"].strip())
token = Path(said["token"].strip()).expanduser().read_text().strip()


def asked(path: str, **headers: str) -> tuple[int, str]:
    """Return the status and the body of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(base + path, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as fault:
        return fault.code, fault.read().decode()


assert asked("/health") == (200, '{"ok":true}'), asked("/health")
assert asked("/memory/status")[0] == 401
status, body = asked("/memory/quarantine", Authorization=f"Bearer {token}")
waiting = len(json.loads(body)["items"])
assert status == 200, body
assert waiting, body
print(f"the server answers, is closed without a token, and shows its owner {waiting} proposals that wait")
