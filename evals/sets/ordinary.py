"""Ordinary agent notes: what no detector of secrets or identifiers should flag."""

# ruff: noqa: SIM905

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator

from evals.sets.case import Case
from evals.sets.kinds import KINDS

_NAMES = "Dana Omar Priya Lukas Mei Sofia Tom Ingrid Kwame Yuki Elena Paul".split()
_PARTS = "parser scheduler billing search ingest export auth cache console importer ranker journal".split()
_CITIES = "Lisbon Osaka Graz Austin Nairobi Malmö Porto Leeds Turin Gdańsk".split()
_WORDS = "amber falcon ledger tulip harbor quartz meadow signal copper lantern orbit pebble".split()

TEMPLATES: tuple[str, ...] = (
    "{name} prefers short answers with the numbers first.",
    "The {part} service runs in three replicas behind the load balancer.",
    "fix({part}): handle empty input in the paginator (#{n3})",
    "feat({part}): add a retry with jitter\n\nCloses #{n3}. Reviewed by {name}.",
    'Revert "{part}: cache the token list" because it broke the nightly run.\n\nThis reverts commit {sha1}.',
    "Deployed {sha7} to staging at {iso}; error rate back to normal after 12 minutes.",
    "request_id={uuid} status=200 duration_ms={n3} path=/v1/{part}/items",
    "trace {hex32} span {hex16} sampled, {part} took {n3} ms",
    "Order {n9} was delivered to {city} on {date}.",
    "Invoice {n6} for {city} is paid; the remainder of {n3}.{n2} EUR is due on {date}.",
    "The event at {ts13} came before the one at {ts13}; clocks differ by {n3} ms.",
    "created_at: {ts10}, updated_at: {ts13}, ttl: 86400",
    "sha256:{hex64} is the digest of the base image.",
    "integrity sha512-{b64_86}==",
    "md5 {hex32}  {part}-{v3}.tar.gz",
    "Upgrade {part} from {v3} to {v3}, then rerun the migration in /srv/{part}/migrations/{n4}_add_index.sql.",
    "Photo saved as IMG_{date8}_{n6}.jpg, checksum {hex8}.",
    "Meeting with {name} on {date} at 14:30 in {city}: decided to postpone the {part} rewrite.",
    "The office in {city} is at {lat}, {lon}; the entrance is on the north side.",
    "The {part} job processed {n6} rows in {n3} s, {n2} were skipped as duplicates.",
    "ISBN 978-3-{n2}-{n6}-0 is the book {name} recommended.",
    "Tracking number 1Z{n3}AA1{n9} left {city} this morning.",
    "git checkout -b {name_l}/{part}-cleanup && git push -u origin HEAD",
    "See src/{part}/{part}_test.py:{n3} and docs/{part}/README.md for the layout.",
    "docker pull registry.internal/{part}:{v3}@sha256:{hex64}",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b64_60}",
    "Commit {sha1} by {name}: tidy the {part} docs.",
    "Primary key is (tenant, seq); foreign key on {part}_id; partition key is the month.",
    "The {part} uses a token bucket with 4000 tokens and a refill of {n2} per second.",
    'max_tokens: {n4}, temperature: 0.{n1}, top_p: 0.9, stop: ["###"]',
    "Context budget is {n5} tokens; the system prompt takes {n3} of them.",
    "{name}'s train leaves {city} at 07:4{n1} from platform {n1}, seat {n2}.",
    'ETag: W/"{hex32}"',
    "The session {uuid} was closed by the client after {n3} s.",
    'Jira {PART}-{n4}: "{part} is slow in {city}", assigned to {name}, 5 points.',
    "Lot {n6}, serial SN{n9}, firmware {v4}, warranty until {date}.",
    "Temperature in {city} was {n2}.{n1} °C at 06:00, humidity {n2} %.",
    "E = mc^2; 3.14159265358979; 2^61 - 1 = 2305843009213693951; 1e-9.",
    "The playlist has {n2} songs, the longest is 9:5{n1}, total 3 h {n2} min.",
    "{w}-{w}-{w} is the name of the new staging cluster.",
    'package-lock: "resolved": "https://packages.example/{w}/-/{w}-{v3}.tgz", "integrity": "sha512-{b64_86}=="',
    "go.sum: github.com/{w}/{w} v{v3} h1:{b64_43}=",
    'Cargo.lock checksum = "{hex64}"',
    "arn:aws:s3:::{w}-{part}-{n4}/exports/{date}/",
    "kubectl -n {part} rollout restart deploy/{part}-{w}",
    "Server listens on 127.0.0.1:{n4} and 192.168.1.{n2}; metrics on 10.0.{n1}.{n2}:9090.",
    "Flight {A2}{n3} to {city}, booking reference {A6}, two bags.",
    "The recipe: {n3} g flour, {n2} g butter, 2 eggs, 180 °C for {n2} minutes.",
    "Sprint {n2} ends on {date}; velocity {n2}, carry-over {n1} tickets.",
    "INSERT INTO {part} (id, seq, at) VALUES ('{uuid}', {n6}, {ts13});",
    "Model {w}-{n2}b scored 0.{n4} on the held-out set, run {hex8}.",
    "{name} asked for the weekly report to be sent on Mondays before nine.",
    "Channel ID C0{A6}{n2}, workspace T0{A6}{n2}, thread {ts10}.{n6}",
    "MAC address {hex2}:{hex2}:{hex2}:{hex2}:{hex2}:{hex2} belongs to the printer on floor {n1}.",
    "color #{hex6} for the header, #{hex6} for links, contrast 4.{n1}:1",
    "Blob {hex64} ({n6} bytes) is referenced by {n1} memories.",
    "UPS battery replaced on {date}; next check in {n2} weeks. Asset {A2}-{n5}.",
    "Latency p50 {n2} ms, p95 {n3} ms, p99 {n3} ms over {n6} requests.",
    "The {part} changelog for {v3} mentions {n2} fixes and one breaking change.",
    "Der Build {n4} von {part} dauert {n2} Minuten; {name} schaut sich das am Montag an.",
    "El informe de {city} se entrega el {date}; falta revisar la sección {n1}.",
    "Le service {part} a redémarré {n1} fois cette nuit, cause inconnue.",
    "{city}の会議は{n1}月{n2}日、参加者は{n2}名です。",
    "部署在{n2}号机房，版本 {v3}，构建号 {n6}。",
    "Встреча с командой {part} перенесена на {date}.",
)

HARD: tuple[str, ...] = (
    "The password policy is strict: at least 12 characters, one digit and one symbol.",
    "Password must be 12 characters or longer and is checked against a breach list.",
    "Reset your password every 90 days, said the old policy; we dropped that rule.",
    "The password is required for the export and is never logged.",
    "The user forgot his password again; sent a reset link.",
    "Passwords are hashed with argon2id, memory 64 MB, three passes.",
    "The password field is empty when the form opens on iOS 17.",
    "The wifi password is on the fridge in the kitchen.",
    "The wifi password is printed on the back of the router.",
    "The admin password is stored in 1Password under Infrastructure.",
    "The database password is rotated by Vault every 24 hours.",
    "Ask Dana for the password to the staging server.",
    "The password has been changed; everybody must log in again.",
    "The password is the same as for the old portal, ask Tom.",
    "The login page says that the password is wrong even when it is right.",
    "Token budget is 4000 for the summary and 16000 for the answer.",
    "The token is valid for 15 minutes and is refreshed by the client.",
    "The access token is sent in the Authorization header as a bearer token.",
    "Bearer tokens are opaque to the client; do not parse them.",
    "He was the standard bearer of the movement.",
    "Secret santa is on Friday at 18:00, budget 20 EUR.",
    "The secret of a good sourdough is patience and a warm kitchen.",
    "The key is to start small and measure.",
    "The key for the dict is user_id, the value is a list of rows.",
    "Key: value pairs are separated by a colon.",
    "api_key: <YOUR_API_KEY>",
    "export OPENAI_API_KEY=your-key-here",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "password: ${DB_PASSWORD}",
    'password = os.environ["DB_PASSWORD"]',
    "token = get_token(user)",
    "password: str = Field(min_length=12)",
    "const token = await auth.getToken({ audience });",
    "DATABASE_URL=postgres://user:password@localhost:5432/app",
    "Use `Authorization: Bearer <token>` in every request.",
    'curl -H "Authorization: Bearer $TOKEN" https://api.internal/v1/items',
    "The secret scanner flags strings such as AKIA followed by sixteen characters.",
    "secret_name: app-db-credentials",
    "secretKeyRef: name: billing-db, key: password",
    "key_id: 4, key_type: rsa, key_length: 2048",
    "The PIN pad on the third floor is broken.",
    "PIN 13 is the built-in LED on the board; pin 7 drives the relay.",
    "The pin is bent and the connector must be replaced.",
    "Pinned versions: numpy 1.26.4, pydantic 2.7.1.",
    "The door code changes every month; reception has it.",
    "Error code is 4711, status code was 503.",
    "The zip code is 80331, the area code 089.",
    "Promo code is SPRING24 until the end of May.",
    "The credentials are kept in the team vault, never in chat.",
    "Credentials expired on Monday; renewed by IT.",
    "Login is slow on Mondays between 9:00 and 9:30.",
    "Our login uses OAuth2 with PKCE and refresh tokens.",
    "JWT tokens are signed with RS256 and expire after 15 minutes.",
    "We use bcrypt with cost 12 for password hashing.",
    "Heartbeat interval is 30 s; the ephemeral volume is wiped on restart.",
    "Hotel check-in is from 15:00, check-out until 11:00.",
    "The passphrase should be long and easy to remember.",
    "A pass phrase of six words is stronger than eight random characters.",
    "The pass was good but the shot went wide.",
    "Compass heading is 270, wind from the west.",
    "Das Passwort ist zu kurz, mindestens zwölf Zeichen sind Pflicht.",
    "Das Passwort wurde zurückgesetzt, bitte neu anmelden.",
    "La contraseña es obligatoria y debe tener ocho caracteres.",
    "Le mot de passe est oublié une fois par semaine par quelqu'un.",
    "La password è scaduta, va cambiata entro venerdì.",
    "A senha é obrigatória no primeiro acesso.",
    "Het wachtwoord is verlopen, vraag een nieuw aan.",
    "Hasło jest za krótkie.",
    "密码是必填项，长度至少八位。",
    "パスワードは必須です。8文字以上にしてください。",
    "Пароль должен содержать не менее 12 символов.",
    "비밀번호는 필수 항목입니다.",
    "La clave es empezar pronto y medir.",
    "Der Schlüssel ist Geduld.",
    "Password rotation: skipped for service accounts until Q3.",
    "Two-factor is on for everyone; backup codes are printed and locked away.",
    "The license key is on the invoice from 2021.",
    "SSH keys are ed25519, one per laptop, listed in inventory/keys.yml.",
    "ssh-ed25519 is preferred over ssh-rsa for new hosts.",
    "The encryption key is derived with HKDF-SHA256 from the master key.",
    "The signing key is rotated yearly and published at /.well-known/jwks.json.",
    "Session cookies are HttpOnly and SameSite=Strict.",
    "Add `password: required` to the schema and rerun the tests.",
    "| field | type |\n| password | string |\n| token | string |",
    "GET /v1/items?page_token=next&limit=50",
    "csrf_token missing in form, returns 403",
    "tokens: 512, tokens_used: 18234, cost: 0.0231",
    "user: Dana, role: reviewer, auth: sso",
    "login: 09:58, logout: 17:12",
    "The combination of BM25 and vectors works best.",
    "The safe is open from 9 to 5; ask at the counter.",
    'We agreed on "password" as the word for the noun in the glossary.',
    "Replace password with passphrase in all user-facing texts.",
    "password123 is on every list of the worst passwords.",
)


def fill(template: str, rnd: random.Random) -> str:
    """Put fresh values into the braces of a template."""
    out = []
    position = 0
    while True:
        start = template.find("{", position)
        end = template.find("}", start) if start >= 0 else -1
        if start < 0 or end < 0:
            out.append(template[position:])
            return "".join(out)
        out.append(template[position:start])
        out.append(_value(template[start + 1 : end], rnd) or template[start : end + 1])
        position = end + 1


def _value(name: str, rnd: random.Random) -> str:
    digits, hexes = "0123456789", "0123456789abcdef"
    b64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    if name[0] == "n" and name[1:].isdigit():
        return rnd.choice("123456789") + "".join(rnd.choices(digits, k=int(name[1:]) - 1))
    if name.startswith("hex"):
        return "".join(rnd.choices(hexes, k=int(name[3:])))
    if name.startswith("b64_"):
        return "".join(rnd.choices(b64, k=int(name[4:])))
    if name[0] == "A" and name[1:].isdigit():
        return "".join(rnd.choices("ABCDEFGHJKLMNPQRSTUVWXYZ", k=int(name[1:])))
    if name[0] == "v" and name[1:].isdigit():
        return ".".join(str(rnd.randrange(20)) for _ in range(int(name[1:])))
    day = f"{rnd.randrange(2019, 2027)}-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02}"
    plain = {
        "name": lambda: rnd.choice(_NAMES),
        "name_l": lambda: rnd.choice(_NAMES).lower(),
        "part": lambda: rnd.choice(_PARTS),
        "PART": lambda: rnd.choice(_PARTS).upper(),
        "city": lambda: rnd.choice(_CITIES),
        "w": lambda: rnd.choice(_WORDS),
        "sha1": lambda: "".join(rnd.choices(hexes, k=40)),
        "sha7": lambda: "".join(rnd.choices(hexes, k=7)),
        "uuid": lambda: str(uuid.UUID(int=rnd.getrandbits(128), version=4)),
        "iso": lambda: f"{day}T{rnd.randrange(24):02}:{rnd.randrange(60):02}:00Z",
        "date": lambda: day,
        "date8": lambda: day.replace("-", ""),
        "ts13": lambda: str(rnd.randrange(1_500_000_000_000, 1_900_000_000_000)),
        "ts10": lambda: str(rnd.randrange(1_500_000_000, 1_900_000_000)),
        "lat": lambda: f"{rnd.uniform(-80, 80):.4f}",
        "lon": lambda: f"{rnd.uniform(-179, 179):.4f}",
    }
    return plain[name]() if name in plain else ""


def ordinary(copies: int = 60) -> Iterator[Case]:
    """Yield ordinary notes: every template ``copies`` times, those of ten kinds too, and every hard sentence once."""
    rnd = random.Random(20)
    for index, template in enumerate(TEMPLATES):
        for number in range(copies):
            yield Case(group="ordinary", wording=f"o{index}", number=number, text=fill(template, rnd), wanted=False)
    for kind, templates in KINDS.items():
        for index, template in enumerate(templates):
            for number in range(copies):
                text = fill(template, rnd)
                yield Case(group=f"kind_{kind}", wording=f"{index}", number=number, text=text, wanted=False)
    for index, text in enumerate(HARD):
        yield Case(group="ordinary_hard", wording=f"h{index}", number=0, text=text, wanted=False)
