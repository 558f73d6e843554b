"""Secrets in notes: provider formats, told passwords in many languages, encoded and broken-up forms."""

# ruff: noqa: E501, SIM905

from __future__ import annotations

import base64
import random
import string
from collections.abc import Iterator
from urllib.parse import quote

from evals.sets.case import Case
from evals.sets.ordinary import ordinary

_A = string.ascii_letters + string.digits
_U = string.ascii_uppercase + string.digits
_H = "0123456789abcdef"
_W = _A + "-_"

#: Format by prefix and length, from the providers' documentation: pieces of (alphabet, length) or literals.
FORMATS: dict[str, tuple[str | tuple[str, int], ...]] = {
    "aws": ("AK" + "IA", ("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "aws_sts": ("AS" + "IA", ("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)),
    "gcp": ("AI" + "za", (_W, 35)), "gcp_oauth": ("GOC" + "SPX-", (_W, 28)), "gcp_access": ("ya" + "29.", (_W, 120)),
    "azure_ad": (("abcXYZ089", 3), "8Q~", (_W, 34)),
    "github": ("gh" + "p_", (_A, 36)), "github_app": ("gh" + "s_", (_A, 36)), "github_fine": ("github" + "_pat_", (_A, 22), "_", (_A, 59)),
    "gitlab": ("gl" + "pat-", (_W, 20)), "gitlab_runner": ("gl" + "rt-", (_W, 20)),
    "slack_bot": ("xo" + "xb-", ("0123456789", 12), "-", ("0123456789", 12), "-", (_A, 24)),
    "slack_app": ("xa" + "pp-1-A", (_U, 10), "-", ("0123456789", 13), "-", (_H, 64)),
    "stripe": ("sk" + "_live_", (_A, 24)), "stripe_long": ("rk" + "_live_", (_A, 99)), "stripe_hook": ("wh" + "sec_", (_A, 32)),
    "openai_old": ("sk" + "-", (_A, 20), "T3Blb" + "kFJ", (_A, 20)), "openai": ("sk" + "-proj-", (_W, 74), "T3Blb" + "kFJ", (_W, 74)),
    "anthropic": ("sk" + "-ant-api03-", (_W, 93), "AA"), "openrouter": ("sk" + "-or-v1-", (_H, 64)),
    "huggingface": ("h" + "f_", (string.ascii_letters, 34)), "replicate": ("r" + "8_", (_A, 37)), "groq": ("gs" + "k_", (_A, 52)),
    "npm": ("np" + "m_", (_A, 36)), "pypi": ("py" + "pi-AgEIcHlwaS5vcmc", (_W, 160)), "rubygems": ("ruby" + "gems_", (_H, 48)),
    "twilio": ("S" + "K", (_H, 32)), "sendgrid": ("S" + "G.", (_W, 22), ".", (_W, 43)),
    "telegram": (("123456789", 10), ":A" + "A", (_W, 33)), "discord": ("M", (_A, 23), ".", (_W, 6), ".", (_W, 27)),
    "discord_hook": ("https://discord.com/api/web" + "hooks/", ("123456789", 18), "/", (_W, 68)),
    "slack_hook": ("https://hooks.slack" + ".com/services/T", (_U, 8), "/B", (_U, 10), "/", (_A, 24)),
    "digitalocean": ("do" + "p_v1_", (_H, 64)), "shopify": ("sh" + "pat_", (_H, 32)), "square": ("sq0" + "atp-", (_W, 22)),
    "mailgun": ("ke" + "y-", (_H, 32)), "mailchimp": ((_H, 32), "-u" + "s14"), "brevo": ("xkey" + "sib-", (_H, 64), "-", (_A, 16)),
    "vault": ("hv" + "s.", (_W, 95)), "atlassian": ("ATA" + "TT3", (_W, 180), "=", (_U, 8)), "linear": ("lin" + "_api_", (_A, 40)),
    "notion": ("nt" + "n_", ("0123456789", 11), (_A, 35)), "notion_old": ("sec" + "ret_", (_A, 43)),
    "postman": ("PM" + "AK-", (_H, 24), "-", (_H, 34)), "doppler": ("dp" + ".pt.", (_A, 43)), "databricks": ("da" + "pi", (_H, 32)),
    "grafana": ("gl" + "sa_", (_A, 32), "_", (_H, 8)), "sentry": ("sn" + "tryu_", (_H, 64)), "age": ("AGE-SECRET" + "-KEY-1", ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)),
    "jwt": ("ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J", (_W, 60), ".", (_W, 43)), "airtable": ("pa" + "t", (_A, 14), ".", (_H, 64)),
    "figma": ("fi" + "gd_", (_W, 40)), "dockerhub": ("dckr" + "_pat_", (_W, 27)), "newrelic": ("NR" + "AK-", (_U, 27)),
    "pulumi": ("pu" + "l-", (_H, 40)), "heroku_new": ("HR" + "KU-", (_W, 60)), "flyio": ("fo" + "1_", (_W, 43)), "supabase": ("sb" + "p_", (_H, 40)),
    "planetscale": ("pscale" + "_tkn_", (_W, 43)), "netlify": ("nf" + "p_", (_A, 36)), "hubspot": ("pat" + "-na1-", (_H, 8), "-", (_H, 4), "-", (_H, 4), "-", (_H, 4), "-", (_H, 12)),
    "facebook": ("EA" + "AC", (_A, 150)), "dropbox": ("s" + "l.", (_W, 130)), "tailscale": ("ts" + "key-auth-k", (_A, 11), "CNTRL-", (_A, 32)),
    "langsmith": ("ls" + "v2_pt_", (_H, 32), "_", (_H, 10)), "perplexity": ("pp" + "lx-", (_A, 48)), "xai": ("xa" + "i-", (_A, 80)),
    "terraform": ((_A, 14), ".atlas" + "v1.", (_W, 67)), "okta_header": ("Authorization: SS" + "WS 00", (_W, 40)),
    "bearer": ("Authorization: Bea" + "rer ", (_W, 40)), "basic": ("Authorization: Ba" + "sic ", (_A, 30), "=="),
    "postgres": ("postgres" + "://app:", (_A, 14), "@db.internal:5432/main"), "mongo": ("mongodb+srv" + "://root:", (_A, 16), "@cluster0.mongodb.net"),
    "redis": ("redis" + "://:", (_A, 20), "@cache:6379/0"), "https_basic": ("https://deploy:", (_A, 18), "@git.internal/app.git"),
    "env": ("DB_PASS" + "WORD=", (_A, 14)), "json": ('{"api_' + 'key": "', (_A, 32), '"}'), "yaml": ("client_" + "secret: ", (_A, 36)),
    "azure_storage": ("DefaultEndpointsProtocol=https;AccountName=x;Account" + "Key=", (_A + "+/", 86), "=="), "aws_secret": ("aws_secret_access" + "_key = ", (_A + "/+", 40)),
    "rsa": ("-----BEGIN RSA PRI" + "VATE KEY-----\n", (_A, 64), "\n", (_A, 64), "\n-----END RSA PRI" + "VATE KEY-----"),
    "openssh": ("-----BEGIN OPENSSH PRI" + "VATE KEY-----\n", (_A, 70), "\n", (_A, 70), "\n-----END OPENSSH PRI" + "VATE KEY-----"),
    "datadog": ("our Datadog API key is ", (_H, 32)), "heroku": ("HEROKU_API" + "_KEY=", (_H, 8), "-", (_H, 4), "-4", (_H, 3), "-a", (_H, 3), "-", (_H, 12)),
    "cloudflare": ("the Cloudflare token is ", (_W, 40)), "mssql": ("Server=db;Database=m;User Id=sa;Pass" + "word=", (_A, 12), ";"),
}  # fmt: skip

NOTES: tuple[str, ...] = (
    "{s}", "Use {s} for the nightly sync.", "prod credentials: {s}", "remember this: {s}, it expires in May", "The key ({s}) was given by Omar.",
    "Meeting notes\n- rotate {s}\n- tell ops", "`{s}` goes into the CI settings", "token=\"{s}\"", "Dana sent me {s} on Slack yesterday.", "für den Export nehmen wir {s}",
    "部署用的密钥 {s} 请保存", "curl -s https://api.internal -H 'X-Api-Key: {s}'", "old one was {s}.", "a: 1\nb: {s}\nc: 3", "[{s}]", "see {s}; then restart the worker",
)  # fmt: skip

TOLD: tuple[str, ...] = (
    "the wifi password is {p}", "Wifi password: {p}", "my password is {p}, do not share it", "The password for the staging server is {p}.", "Netflix login is dana@x.example, password {p}",
    "password for the admin panel: {p}", "We changed the router password to {p} on Friday", "log in as root with the password {p}", "the guest network uses the password {p}", "pw = {p}", "pass: {p}",
    "The user's laptop password is \"{p}\".", "admin / {s}", "username admin and password {p}", "his password at the bank is still {p}", "{s} is the wifi password", "passphrase for the backup drive is {p}",
    "The zip is encrypted, password {s}", "use {s} as the password for the vpn", "the new password will be {p}", "Remember that the Grafana password was reset to {p}", "the vpn password of the Graz office is {p}",
    "password → {p}", "The password's {p}", "credentials for the demo: demo:{s}", "I always use {s} as my password", "Set the root password to {p} after install", "the password to open the PDF is {p}",
)  # fmt: skip
#: Wordings in which the value stands apart from the noun: in the next clause, after a change, handed to somebody.
APART: tuple[str, ...] = (
    "Remember my Netflix password, it's {p}", "My wifi password? It's {s}.", "remember my bank login password: it is {p}", "Don't forget the alarm password, it's {s}", "Note the guest wifi password for me. It's {s}", "I keep forgetting my mail password, it's {p}, write it down",
    "I changed my Netflix password to {p}", "We rotated the admin password yesterday, it's {s} now", "Password was changed from {s} to {s}", "my mail password has changed to {p}", "the password got changed, new one is {s}", "new password for the printer: {p}",
    "use {s} to log in to the wifi", "It's {p}, the wifi password", "{s} is what I use as password on the forum", "the admin panel wants {p} as the password", "I set {p} as the password", "they gave us the password {s}", "ssid HomeNet, key {s}", "the code word for the alarm company is {p}", "you can get into the NAS with admin and {s}", "use {s} when it asks for a password", "if it asks for the password type {s}", "wifi: Lakeside / {s}", "ssid Lakeside psk {s}", "the password is {n}", "changed the guest wifi password from {n} to {n}",
)  # fmt: skip
#: Four words joined, and a word in disguise with a dot.
PHRASES: tuple[str, ...] = (
    'smtp_password = "{f}"', "the backup passphrase is {f}", "DB_PASSWORD={f}", "wifi pw {f}", "the master password is {f}", "the password is {l}", "wifi password: {l}", "my pw is {l}, keep it", "log in with password {l}", "DB_PASSWORD={l}",
)  # fmt: skip
#: Settings and commands.
COMMANDS: tuple[str, ...] = (
    "mysql -u root -p{s} shop", "mysqldump -uapp -p{p} db", "sshpass -p {p} ssh host", "export PGPASSWORD={s}", "curl -u admin:{p} https://x.example", "echo {s} | docker login --password-stdin", "redis-cli -a {p} ping", "<password>{s}</password>", "requirepass {s}", "net use x: \\\\srv\\s /user:ana {s}",
    "CREATE USER app IDENTIFIED BY '{s}'", "psexec \\\\host -u admin -p {s} cmd", "deepgram_key = {h}", "CLAY_KEY: {h}", "statsig: {k}", "acme_live_{k}", "TRAVIS_TOKEN={k}", "mixpanel secret {h}",
)  # fmt: skip
_JOINED = "saffron orbit glacier copper meadow lantern thunder velvet maple anchor pepper quartz river harbor".split()
PINS: tuple[str, ...] = (
    "my pin is {d}", "PIN: {d}", "the door code is {d}", "the alarm code for the office is {d}", "Bank card pin {d}", "garage code: {d}", "the code to the lockbox is {d}", "gate code {d}, then press the bell",
    "phone unlock code is {d}", "The safe combination is {d}", "the SIM PIN is {d}", "voicemail pin = {d}",
)  # fmt: skip
ABROAD: tuple[str, ...] = (
    "Das WLAN-Passwort lautet {p}", "Passwort: {p}", "mein Kennwort ist {p}", "das Passwort für den Server ist {p}", "Die PIN ist {d}", "der Türcode lautet {d}",
    "la contraseña es {p}", "la contraseña del wifi es {p}", "contraseña: {p}", "mi clave es {p}", "el pin de la tarjeta es {d}", "el código de la puerta es {d}",
    "le mot de passe est {p}", "mot de passe : {p}", "le mot de passe du wifi est {p}", "mon mdp c'est {p}", "le code de la porte est {d}", "mon code pin est {d}",
    "a senha é {p}", "a senha do wifi é {p}", "senha: {p}", "o código da porta é {d}", "la password è {p}", "la password del wifi è {p}", "il pin è {d}",
    "het wachtwoord is {p}", "wifi-wachtwoord: {p}", "de pincode is {d}", "hasło to {p}", "hasło do wifi: {p}", "kod do drzwi to {d}",
    "şifre: {p}", "wifi şifresi {s}", "parola {s}", "密码是{p}", "wifi密码：{p}", "密碼是 {p}", "门禁码是{d}", "パスワードは{p}です", "Wi-Fiのパスワード：{p}", "暗証番号は{d}",
    "비밀번호는 {p}입니다", "와이파이 비밀번호: {p}", "пароль {s}", "пароль от вайфая: {p}", "мой пароль — {p}", "пин-код {d}", "كلمة المرور هي {p}", "पासवर्ड है {p}", "heslo je {p}", "lösenordet är {p}", "passordet er {p}", "adgangskoden er {p}", "salasana on {p}", "parola este {p}", "jelszó: {p}",
)  # fmt: skip
_PLAIN = "sunshine banana dragonfly kittycat monkey7 letmein chocolate pineapple starwars iloveyou".split()


def make(pieces: tuple[str | tuple[str, int], ...], rnd: random.Random) -> str:
    """Build one secret from literals and random bodies."""
    return "".join(p if isinstance(p, str) else "".join(rnd.choices(p[0], k=p[1])) for p in pieces)


def _strong(rnd: random.Random) -> str:
    word = rnd.choice("hunter falcon Sommer Tiger winter Blue gato casa rosso".split())
    return rnd.choice(
        (
            f"{word}{rnd.randrange(1, 9999)}",
            f"{word}!{rnd.randrange(99)}x",
            f"{rnd.choice('XQZ')}{rnd.randrange(9)}{word}_{rnd.randrange(99)}",
            "".join(rnd.choices(_A, k=8)) + "7a",
            f"{word[:2]}0{word[2:]}#{rnd.randrange(10)}",
        )
    )


def _told(rnd: random.Random) -> str:
    return rnd.choice(_PLAIN) if rnd.random() < 0.3 else _strong(rnd)


def _disguise(kind: str, secret: str, rnd: random.Random) -> str:
    if kind == "zero_width":
        at = rnd.randrange(3, len(secret) - 3)
        return secret[:at] + "\u200b" + secret[at:]
    if kind == "fullwidth":
        return "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in secret)
    if kind == "spaces":
        return " ".join(secret[i : i + 5] for i in range(0, len(secret), 5))
    if kind == "concat":
        return f'"{secret[:9]}" + "{secret[9:]}"'
    if kind == "wrapped":
        return secret[: len(secret) // 2] + "\n" + secret[len(secret) // 2 :]
    if kind == "base64":
        return base64.b64encode(f"key={secret}".encode()).decode()
    if kind == "hex":
        return secret.encode().hex()
    if kind == "percent":
        return quote(secret, safe="").replace("a", "%61").replace("S", "%53")
    if kind == "entity":
        return "".join(f"&#{ord(c)};" for c in secret)
    return secret.translate(str.maketrans("AaoeEIK", "АаоеЕІК"))


def cases() -> Iterator[Case]:
    """Yield secrets and the ordinary notes that hold none."""
    rnd = random.Random(7)
    for name, pieces in FORMATS.items():
        for index, note in enumerate(NOTES):
            secret = make(pieces, rnd)
            yield Case(
                group="provider", wording=f"{name}-{index}", number=0, text=note.replace("{s}", secret), wanted=True
            )
    for kind in (
        "zero_width",
        "fullwidth",
        "spaces",
        "concat",
        "wrapped",
        "base64",
        "hex",
        "percent",
        "entity",
        "homoglyph",
    ):
        for name in (
            "aws",
            "github",
            "gitlab",
            "slack_bot",
            "stripe",
            "gcp",
            "anthropic",
            "npm",
            "sendgrid",
            "shopify",
            "linear",
            "digitalocean",
        ):
            note = rnd.choice(("Use {s} for the sync.", "{s}", "key is {s}, ask Omar", "- prod: {s}\n- rest"))
            secret = make(FORMATS[name], rnd)
            yield Case(
                group="disguised",
                wording=f"{kind}-{name}",
                number=0,
                text=note.replace("{s}", _disguise(kind, secret, rnd)),
                wanted=True,
            )
    for group, templates in (
        ("told", TOLD),
        ("told_apart", APART),
        ("told_phrase", PHRASES),
        ("told_command", COMMANDS),
        ("told_pin", PINS),
        ("told_abroad", ABROAD),
    ):
        for index, template in enumerate(templates):
            for number in range(12):
                text = (
                    template.replace("{p}", _told(rnd))
                    .replace("{s}", _strong(rnd))
                    .replace("{d}", str(rnd.randrange(1000, 999999)))
                    .replace("{f}", "-".join(rnd.sample(_JOINED, 4)))
                    .replace("{l}", f"{rnd.choice(('c0met', 'riv3r', 'gran1te'))}.{rnd.choice(_JOINED)}")
                    .replace("{n}", f"{rnd.choice(_JOINED).title()}-{rnd.randrange(1, 99)}")
                    .replace("{h}", "".join(rnd.choices(_H, k=32)))
                    .replace("{k}", "".join(rnd.choices(_A, k=32)))
                )
                yield Case(group=group, wording=f"{index}", number=number, text=text, wanted=True)
    yield from ordinary()
