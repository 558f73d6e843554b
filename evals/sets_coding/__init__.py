"""Talk between developers and an assistant, composed from hand-written turns, and secrets planted in such talk.

A file a topic; turns are separated by ``---`` and begin with ``U:`` or ``A:``. ``<<name>>`` is filled with one of
several words. Every second turn of a file, and every second carrier of a secret, is of the half that nobody reads.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

Half = Literal["dev", "unread"]
HALVES: tuple[Half, Half] = ("dev", "unread")
TOPICS = (
    *("authentication", "payments", "deployment", "databases", "testing"),
    *("scraping", "mail", "queues", "notebooks", "shell"),
)
#: How often each turn is composed with other names.
VARIANTS = 8

_WORDS: dict[str, tuple[str, ...]] = {
    "who": ("Mara", "Jonas", "Priya", "Tomasz", "Elif", "Wen", "Oskar", "Nadia", "Luis", "Ingrid"),
    "who2": ("Samir", "Beate", "Kofi", "Yuki", "Pavel", "Rosa"),
    "svc": ("billing", "orders", "ledger", "inventory", "signup", "gateway", "mailer", "reports", "catalog"),
    "db": ("shopdb", "analytics", "events_prod", "crm", "warehouse", "metrics", "users_v2"),
    "env": ("staging", "production", "preview", "qa", "demo"),
    "host": ("api.acme.dev", "shop.example.net", "ops.northwind.io", "app.fabrikam.org", "git.initech.co"),
    "fn": ("refresh_token", "list_orders", "parse_rows", "send_batch", "load_config", "get_user_by_id"),
    "ver": ("1.4.2", "24.0.3", "7.1.3", "3.12.1", "0.9.8"),
    "port": ("3000", "8000", "8080", "5001", "9443"),
    "n": ("7", "12", "15", "24", "30", "48", "64", "85"),
}
_SLOT = re.compile(r"<<([a-z0-9]+)>>")


class Said(NamedTuple):
    """One turn of a talk."""

    topic: str
    role: str
    text: str


class Planted(NamedTuple):
    """A turn with a secret, and the strings of which none may reach a file."""

    kind: str
    text: str
    secret: tuple[str, ...]


def turns(half: Half) -> Iterator[Said]:
    """Yield the turns of a half, the same ones at every call."""
    for topic in TOPICS:
        text = (Path(__file__).parent / f"{topic}.txt").read_text("utf-8")
        written = text.rstrip("\n").split("\n---\n")[HALVES.index(half) :: 2]
        for variant in range(VARIANTS):
            chosen = random.Random(f"{topic} {variant}")
            for each in written:
                filled = _SLOT.sub(lambda slot: chosen.choice(_WORDS[slot[1]]), each)  # noqa: B023 - used at once
                role, _, body = filled.partition(": ")
                yield Said(topic, "user" if role == "U" else "assistant", body)


def planted(half: Half) -> Iterator[Planted]:
    """Yield a hundred turns with a secret each, the same ones at every call."""
    place = HALVES.index(half)
    chance = random.Random(f"secrets {half}")
    for kind, makers, carriers, count in (
        ("provider", _PROVIDERS, _IN_CODE, 40),
        ("key block", (_key_block,), _BLOCKS, 10),
        ("jwt", (_jwt,), _IN_CODE, 10),
        ("address", _ADDRESSES, _AS_IT_IS, 25),
        ("told", _TOLD, _AS_IT_IS, 15),
    ):
        own = carriers[place::2]
        for number in range(count):
            # Both halves meet every form.
            text, secret = makers[number % len(makers)](chance)
            yield Planted(kind, own[number % len(own)].replace("@@", text), secret)


_Maker = Callable[[random.Random], tuple[str, tuple[str, ...]]]
_ALNUM = string.ascii_letters + string.digits
_LOWER = string.ascii_lowercase + string.digits
_HEX = "0123456789abcdef"


def _run(chance: random.Random, letters: str, size: int) -> str:
    while True:
        found = "".join(chance.choices(letters, k=size))
        if any(map(str.isdigit, found)) and any(map(str.isalpha, found)):
            return found


def _format(before: str, letters: str, size: int, after: str = "") -> _Maker:
    def make(chance: random.Random) -> tuple[str, tuple[str, ...]]:
        body = _run(chance, letters, size)
        return before + body + after, (body,)

    return make


_UPPER = string.ascii_uppercase + "234567"
# Halves of the prefixes are joined here, so that no scanner of repositories takes this file for a leak.
_PROVIDERS: tuple[_Maker, ...] = (
    _format("AK" + "IA", _UPPER, 16),
    _format("gh" + "p_", _ALNUM, 36),
    _format("gh" + "o_", _ALNUM, 36),
    _format("github_" + "pat_11", _ALNUM, 20, "_" + "a8Kq" * 14 + "Z3p"),
    _format("gl" + "pat-", _ALNUM, 20),
    _format("sk_" + "live_", _ALNUM, 24),
    _format("rk_" + "live_", _ALNUM, 24),
    _format("wh" + "sec_", _ALNUM, 32),
    _format("xo" + "xb-172839405162-193847561029-", _ALNUM, 24),
    _format("AI" + "za", _ALNUM, 35),
    _format("np" + "m_", _ALNUM, 36),
    _format("pypi-" + "AgEIcHlwaS5vcmc", _ALNUM, 70),
    _format("sk-" + "ant-api03-", _ALNUM, 93, "AA"),
    _format("sk-" + "proj-", _ALNUM, 48),
    _format("hf" + "_", _ALNUM, 34),
    _format("dop_" + "v1_", _HEX, 64),
    _format("shp" + "at_", _HEX, 32),
    _format("hv" + "s.", _ALNUM, 90),
    _format("dck" + "r_pat_", _ALNUM, 27),
    _format("lin" + "_api_", _ALNUM, 40),
)


def _sendgrid(chance: random.Random) -> tuple[str, tuple[str, ...]]:
    first, second = _run(chance, _ALNUM, 22), _run(chance, _ALNUM, 43)
    return f"SG.{first}.{second}", (first, second)


_PROVIDERS += (_sendgrid,)


def _key_block(chance: random.Random) -> tuple[str, tuple[str, ...]]:
    kind, size = chance.choice((("RSA ", 1190), ("EC ", 121), ("OPENSSH ", 400), ("", 1218)))
    body = base64.b64encode(chance.randbytes(size)).decode()
    lines = tuple(body[start : start + 64] for start in range(0, len(body), 64))
    text = "\n".join((f"-----BEGIN {kind}PRIVATE" + " KEY-----", *lines, f"-----END {kind}PRIVATE" + " KEY-----"))
    return text, tuple(line for line in lines if len(line) > 20)


def _jwt(chance: random.Random) -> tuple[str, tuple[str, ...]]:
    claims = (
        f'{{"sub":"{_run(chance, _HEX, 12)}","role":"admin","exp":{chance.randrange(1_700_000_000, 1_900_000_000)}}}'
    )
    head, body = (
        base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in ('{"alg":"HS256","typ":"JWT"}', claims)
    )
    sign = _run(chance, _ALNUM, 43)
    return f"{head}.{body}.{sign}", (body, sign)


def _address(form: str) -> _Maker:
    def make(chance: random.Random) -> tuple[str, tuple[str, ...]]:
        password = _run(chance, _ALNUM, chance.randrange(10, 22))
        host = chance.choice(("db-3.acme.dev", "10.2.0.14", "pg.northwind.io", "cluster7.fabrikam.org"))
        return form.replace("PW", password).replace("HOST", host), (password,)

    return make


_ADDRESSES: tuple[_Maker, ...] = tuple(
    map(
        _address,
        (
            "DATABASE_URL=postgres://ledger:PW@HOST:5432/ledger",
            "connect with `postgresql+psycopg2://app:PW@HOST/orders?sslmode=require`",
            'mongoose.connect("mongodb+srv://admin:PW@HOST/test?retryWrites=true")',
            "the broker is amqp://worker:PW@HOST:5672/jobs and it refuses me",
            "REDIS_URL=rediss://default:PW@HOST:6380/0 in the .env of staging",
            "git clone https://oauth2:PW@HOST/acme/billing.git asks for a login",
            "mysql://root:PW@HOST:3306/shop times out, is the port open?",
            "spring.datasource.url=jdbc:postgresql://HOST/crm?user=crm&password=PW",
            "Server=HOST,1433;Database=crm;User Id=sa;Password=PW;Encrypt=True",
            "curl -u deploy:PW https://HOST/api/releases gives 502",
        ),
    )
)


def _credential(form: str, shape: Callable[[random.Random], str]) -> _Maker:
    def make(chance: random.Random) -> tuple[str, tuple[str, ...]]:
        value = shape(chance)
        return form.replace("PW", value), (value,)

    return make


_NOUNS = ("Kestrel", "Granite", "Juniper", "Falcon", "Walnut", "Harbour", "Copper", "Saffron", "Glacier", "Pepper")


def _noun(chance: random.Random) -> str:
    return chance.choice(_NOUNS)


#: Passwords and codes of fifteen shapes, in plain sentences between the code.
_TOLD: tuple[_Maker, ...] = (
    _credential(
        "The password of the staging db is PW, use that for the dump.", lambda c: f"{_noun(c)}${_noun(c).lower()}"
    ),
    _credential("My VPN password is PW and it still asks again.", lambda c: _run(c, _ALNUM, 11)),
    _credential("Login for the admin page: user root, password PW", lambda c: f"{_noun(c)}{c.randrange(10, 99)}!"),
    _credential("The wifi password at the office is PW", lambda c: f"{_noun(c)[:2]}0{_noun(c)[2:].lower()}77"),
    _credential("the root password is PW", lambda c: f"{_noun(c).lower()}{_noun(c)}{c.randrange(100, 999)}"),
    _credential("password for the grafana user: PW", lambda c: f"{_noun(c).lower()}{c.randrange(1000, 9999)}"),
    _credential("The passphrase of the signing key is PW", lambda c: "-".join(c.sample(_NOUNS, 5)).lower()),
    _credential("The keystore password is PW", lambda c: f"{_noun(c)}.{_noun(c).lower()}.{c.randrange(10, 99)}"),
    _credential("I set the db password to PW yesterday", lambda c: f"{_noun(c)}#{_noun(c)}9"),
    _credential("api key for the weather service: PW", lambda c: _run(c, _HEX, 32)),
    _credential(
        "The licence key is PW", lambda c: "-".join(_run(c, string.ascii_uppercase + string.digits, 5) for _ in "abcd")
    ),
    _credential("The PIN of the YubiKey is PW", lambda c: str(c.randrange(100_000, 999_999))),
    _credential("export ADMIN_PASSWORD=PW", lambda c: _run(c, _ALNUM, 14)),
    _credential('api_secret = "PW"', lambda c: _run(c, _ALNUM, 40)),
    _credential("auth_token: PW", lambda c: _run(c, _LOWER, 36)),
)

_AS_IT_IS = (
    "Here's what I have:\n@@\nIt worked last week.",
    "@@\n\nWhat am I doing wrong?",
    "I get a timeout since the move.\n\n@@",
    "From the old wiki:\n@@\nCan you clean that up?",
    "Two questions. First this:\n@@\nSecond, how do I rotate it?",
    "@@\nPlease write the systemd unit for it.",
)
_IN_CODE = (
    '```python\nTOKEN = "@@"\nclient = Client(token=TOKEN)\n```\nThe client says 401.',
    "I ran\n```\nexport API_TOKEN=@@\n./deploy.sh\n```\nand nothing happened.",
    "```js\nfetch(url, { headers: { Authorization: `Bearer @@` } })\n```\nIs the header right?",
    "My .env:\n```\nNODE_ENV=production\nSERVICE_TOKEN=@@\nPORT=3000\n```",
    "The log prints `token @@ rejected` each minute.",
    "```yaml\nenv:\n  - name: TOKEN\n    value: @@\n```\nThe pod doesn't see it.",
    "curl -H 'X-Token: @@' https://api.acme.dev/v1/me gives a 403, why?",
    "tests/test_api.py:\n```python\ndef test_me(client):\n    r = client.get('/me', token='@@')\n    assert r.ok\n```",
)
_BLOCKS = (
    "I pasted this into the secret and ssh still says no:\n\n@@\n\nIs a line missing?",
    "```\n@@\n```\nopenssl can't read it.",
    'key.pem:\n@@\nand in Python `open("key.pem").read()`.',
    "cat > id_rsa <<EOF2\n@@\nEOF2\nchmod 600 id_rsa",
)
