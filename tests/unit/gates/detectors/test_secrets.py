"""Secrets: formats, told values, disguises, and ordinary text."""

import base64
import random
import string

import pytest

from keepward.gates.detectors import secrets

ALNUM = string.ascii_letters + string.digits


def body(count, alphabet=ALNUM, seed=3):
    return "".join(random.Random(seed).choices(alphabet, k=count))


AWS = "AK" + "IA" + body(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
GITHUB = "gh" + "p_" + body(36)


def shown(text):
    return [text[f.start : f.end] for f in secrets.scan(text)]


def test_a_provider_key_is_found_complete_in_a_note():
    assert [
        secret
        for secret in [
            AWS,
            GITHUB,
            "gl" + "pat-" + body(20),
            "sk" + "_live_" + body(24),
            "np" + "m_" + body(36),
            "AI" + "za" + body(35),
        ]
        if shown(f"use {secret} for the sync.") != [secret]
    ] == []


def test_a_documented_format_is_certain():
    assert [f.certainty for f in secrets.scan(AWS)] == ["certain"]


def test_a_prose_password_is_likely():
    assert [f.certainty for f in secrets.scan("the wifi password is hunter2")] == ["likely"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("the wifi password is hunter2", "hunter2"),
        ("my pin is 4711", "4711"),
        ("Das Passwort lautet Sommer77", "Sommer77"),
        ("la contraseña es gatito99", "gatito99"),
        ("le mot de passe est Soleil9", "Soleil9"),
        ("пароль от роутера: qwerty77", "qwerty77"),
        ("a senha é flamengo10", "flamengo10"),
        ("hasło to kotek12", "kotek12"),
        ("the wifi password is banana.", "banana"),
        ("hunter2 is the wifi password", "hunter2"),
    ],
)
def test_a_prose_secret_is_found(text, value):
    assert shown(text) == [value]


def test_ordinary_text_yields_nothing():
    cases = [
        "the password policy is strict",
        "problem is the wifi password",
        "the keeper of the password is the problem",
        "Anna is the keeper of the password",
        "we authenticate with LDAP as the password backend",
        "reset your password",
        "token budget is 4000",
        "he was the standard bearer of the movement",
        "secret santa is on Friday",
        "api_key: <YOUR_API_KEY>",
        "password: ${DB_PASSWORD}",
        "order 123456789 at 1700000000123",
        "heartbeat interval is 30 s on the ephemeral volume",
        "hotel check-in is at 15:00",
        '{"part_kind":"user-prompt","timestamp":"2026-11-23T00:02:17.168340Z"}',
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 in 123e4567-e89b-42d3-a456-426614174000",
        'password = os.environ["DB_PASSWORD"]',
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_disguised_key_is_found():
    cases = [
        GITHUB[:9] + "\u200b" + GITHUB[9:],
        GITHUB[:14] + "\n" + GITHUB[14:],
        f'"{GITHUB[:9]}" + "{GITHUB[9:]}"',
        base64.b64encode(f"key={GITHUB}".encode()).decode(),
        GITHUB.encode().hex(),
        "".join(f"&#{ord(c)};" for c in GITHUB),
        GITHUB.replace("gh", "%67%68"),
        "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in GITHUB),
    ]
    assert [disguised for disguised in cases if not secrets.scan(f"note: {disguised} end")] == []


def test_the_finding_of_an_encoded_key_covers_the_complete_encoding():
    encoded = base64.b64encode(f"key={GITHUB}".encode()).decode()
    assert shown(f"note: {encoded} end") == [encoded]


def test_a_private_key_block_is_found_to_its_last_line():
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{body(64)}\n{body(64)}\n-----END RSA PRIVATE KEY-----"
    assert shown(f"x\n{block}\ny") == [block]


def test_the_password_of_a_connection_url_is_found():
    assert shown("postgres://app:" + "pa55word9" + "@db:5432/main") == ["pa55word9"]


def test_all_of_a_long_prose_value_is_covered():
    value = "x7Kq" * 60
    text = f"the password is {value}, keep it"
    assert [text[each.start : each.end] for each in secrets.scan(text)] == [value]


@pytest.mark.parametrize("word", ["football", "banana", "rosebud", "umbrella"])
def test_word_that_starts_like_a_literal_prefix_is_read_completely(word):
    text = f"export PGPASSWORD={word}"
    assert [text[each.start : each.end] for each in secrets.scan(text)] == [word]


@pytest.mark.parametrize(
    ("connection", "held"),
    [
        ("postgres://user:password@localhost/db", False),
        ("mysql://root:secret@localhost:3306/app", False),
        ("mongodb://admin:changeme@localhost:27017", False),
        ("postgresql://scott:tiger@localhost/test", False),
        ("postgres://app:V3ry·Real-9xQ2@db.prod.acme.io/app", True),
        ("postgres://user:Tr0ub·4dor99@localhost/db", True),
    ],
)
def test_tutorial_connection_string_passes_and_a_real_password_fails(connection, held):
    text = f"```python\nengine = create_engine('{connection}')\n```".replace("·", "")
    assert bool(secrets.scan(text)) is held


def test_text_near_the_word_key_is_no_secret() -> None:
    cases = [
        "Hana keeps a staging cluster on Friday 9144, and Jonas tests the key cabinet called datepe in case 5",
        "His card is {}",
        "ferry secret 003",
    ]
    assert [text for text in cases if secrets.scan(text.format("4111 1111 1111 1111"))] == []


@pytest.mark.parametrize(
    "number",
    [
        "07700 900123",
        "(0151) 496 0111",
        "0151-496-0111",
        "+44 7700 900123",
        "0171 2345678",
        "06 12 34 56 78",
        "555-014-2233",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "I changed my phone, it's {} now",
        "My phone broke, use {} until friday",
        "Mein Handy ist kaputt, nimm {} bis Freitag",
        "The door opens if you call {}",
        "Mon nouveau téléphone : {}",
    ],
)
def test_phone_number_near_a_phone_word_is_no_code(text: str, number: str) -> None:
    assert secrets.scan(text.format(number)) == []


def test_an_opening_hour_is_no_code() -> None:
    cases = [
        "The gate opens at 1800",
        "The safe is unlocked until 2200",
        "Unlock the gym from 0600",
        "The office opens from 0800 to 1800",
        "Gym opens 0630 - 2200",
        "Il cancello apre 0800",
        "De deur gaat open 0800",
        "Le portail s'ouvre vers 1800",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_an_error_code_near_a_word_is_no_secret() -> None:
    cases = [
        "Area code of the office is 0211",
        "Country code for the phone is 0049",
        "kod pocztowy 00950, drzwi po lewej",
        "Код города 8412, телефон на столе",
        "Tax code for the office is 1257",
        "Paint code for the garage: 4471",
        "The boiler shows code 4471",
        "code freeze 1215, office closed",
        "Codes of practice in the office: 1147",
        "Gift code for the tablet 447182",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_list_of_small_numbers_is_no_lock_combination() -> None:
    cases = [
        "The team in the office plays 4-2-3-1",
        "The gym does 5-5-3-1 sets",
        "The lift stops at 1 2 3 4 5",
        "Heating levels: 2-2-3-3",
        "The safe was opened 12-04-24",
        "safe in: 12/04/24",
        "Tresor 35/25/25",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_product_name_is_no_password() -> None:
    cases = [
        "The file opens with Word2019",
        "The file opens with LibreOffice",
        "Das WLAN geht mit WiFi6E",
        "The router is a Fritz!Box7590",
        "Spotify playlist P!nk2023",
        "Phone plan: AT&T5Gplus",
        'Canva template "Flyer2024"',
        'Kindle: "1984" and "Catch22"',
        'My laptop has the sticker "Debian12"',
        "Site: react@18 and vue@3",
        "The mail with Report2024 is here",
        "Connect to the printer via USB3, the wifi drops at 40 m.",
        "Log in with Firefox115 fails, with Chrome131 it works.",
        "pick the one for dbus-user-session and pinentry-gnome3",
        "自転車の車体番号はWSBC604129981。",
        "Wi-Fiのパスワードはルーター7590の裏のシール。",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_names_keys_and_login_pages_are_no_secrets() -> None:
    cases = [
        "Log in to db-prod-03 to see the logs",
        "Log in on the server as root@nas02",
        "Press Ctrl-Alt-F2 on the laptop",
        "Dial 9911 from the hotel phone for reception",
        "Her phone: 0445566",
        "*101# am Handy zeigt das Guthaben",
        "Server ops@firma.example / web-prod-01",
        "The front door opens with badge 4417 during the day.",
        "Il codice dell'allarme è a pagina 217.",
        "La crèche ouvre à 0730, la porte de derrière à 0800.",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_number_near_opening_hours_is_no_code() -> None:
    cases = [
        "Typed 1800 on my laptop today, goal is 2000",
        "The office opened with 40 people, now 1200",
        "Pop in at the gym 1815",
        "The bench press at the gym: 1000",
        "Tape measure: door 2100",
        "Gibst du 1200 für das Handy",
        "git rebase did not correctly pass --gpg-sign to it",
        "Set the servo pin to 9 and the baud rate to 115200.",
        "Password hashing uses argon2id with m=65536, t=3, p=4.",
        "// { user: 38579, system: 6986 }",
        "parse('https://user:pass@sub.example.com:8080/p/a/t/h?query=string#hash')",
        "printf(&quot;Password is correct.&quot;);",
    ]
    assert [text for text in cases if secrets.scan(text)] == []
