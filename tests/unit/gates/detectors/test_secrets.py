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
        ("Das Passwort lautet Sommer77", "Sommer77"),
        ("le mot de passe est Soleil9", "Soleil9"),
        ("a senha é flamengo10", "flamengo10"),
        ("the wifi password is banana.", "banana"),
    ],
)
def test_a_prose_secret_is_found(text, value):
    assert shown(text) == [value]


def test_ordinary_text_yields_nothing():
    cases = [
        "the password policy is strict",
        "the keeper of the password is the problem",
        "we authenticate with LDAP as the password backend",
        "token budget is 4000",
        "secret santa is on Friday",
        "password: ${DB_PASSWORD}",
        "heartbeat interval is 30 s on the ephemeral volume",
        '{"part_kind":"user-prompt","timestamp":"2026-11-23T00:02:17.168340Z"}',
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
        "0171 2345678",
        "555-014-2233",
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "I changed my phone, it's {} now",
        "Mein Handy ist kaputt, nimm {} bis Freitag",
        "The door opens if you call {}",
    ],
)
def test_phone_number_near_a_phone_word_is_no_code(text: str, number: str) -> None:
    assert secrets.scan(text.format(number)) == []


def test_an_opening_hour_is_no_code() -> None:
    cases = [
        "The gate opens at 1800",
        "Unlock the gym from 0600",
        "Gym opens 0630 - 2200",
        "De deur gaat open 0800",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_an_error_code_near_a_word_is_no_secret() -> None:
    cases = [
        "Area code of the office is 0211",
        "kod pocztowy 00950, drzwi po lewej",
        "Tax code for the office is 1257",
        "The boiler shows code 4471",
        "Codes of practice in the office: 1147",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_code_is_found_after_a_line_that_names_none() -> None:
    assert shown("Tea is green.\nalarm code of the shed 4711") == ["4711"]


@pytest.mark.parametrize("value", ["left 17, right 3, left 88", "17 left, 3 right, 88 left"])
def test_the_combination_of_a_dial_is_found_complete(value: str) -> None:
    assert shown(f"The safe combination is {value}") == [value]


def test_a_list_of_small_numbers_is_no_lock_combination() -> None:
    cases = [
        "The team in the office plays 4-2-3-1",
        "The lift stops at 1 2 3 4 5",
        "Heating levels: 2-2-3-3",
        "safe in: 12/04/24",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_product_name_is_no_password() -> None:
    cases = [
        "The file opens with Word2019",
        "Das WLAN geht mit WiFi6E",
        "Spotify playlist P!nk2023",
        'Canva template "Flyer2024"',
        'My laptop has the sticker "Debian12"',
        "The mail with Report2024 is here",
        "Log in with Firefox115 fails, with Chrome131 it works.",
        "自転車の車体番号はWSBC604129981。",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_names_keys_and_login_pages_are_no_secrets() -> None:
    cases = [
        "Log in to db-prod-03 to see the logs",
        "Press Ctrl-Alt-F2 on the laptop",
        "Her phone: 0445566",
        "Server ops@firma.example / web-prod-01",
        "Il codice dell'allarme è a pagina 217.",
    ]
    assert [text for text in cases if secrets.scan(text)] == []


def test_a_number_near_opening_hours_is_no_code() -> None:
    cases = [
        "Typed 1800 on my laptop today, goal is 2000",
        "Pop in at the gym 1815",
        "Tape measure: door 2100",
        "git rebase did not correctly pass --gpg-sign to it",
        "Password hashing uses argon2id with m=65536, t=3, p=4.",
        "parse('https://user:pass@sub.example.com:8080/p/a/t/h?query=string#hash')",
    ]
    assert [text for text in cases if secrets.scan(text)] == []
