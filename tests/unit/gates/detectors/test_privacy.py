"""Structured identifiers and their look-alikes."""

from importlib import import_module

import pytest

from keepward.gates.detectors import pii
from keepward.gates.detectors.tables import columns, read, split_entries

FORMS = [columns(line, "name", "pattern", "example") for line in read("identifiers")["rules"].splitlines()]
NUMBERS = [columns(line, "name", "number", "example", "labels") for line in read("identifiers")["numbers"].splitlines()]
CHECKED = [row for row in NUMBERS if row["number"] != "any"]


def names(text):
    return {finding.detector for finding in pii.scan(text)}


def invalid(row):
    """The number of a line with one other character, the last one where that tells, for which its check does not hold."""
    checks = [import_module(f"stdnum.{name}").is_valid for name in row["number"].split("|")]
    number = row["example"]
    places = range(len(number) - 1, -1, -1)
    changed = (number[:at] + char + number[at + 1 :] for at in places for char in "0123456789ABCX")
    return next(number for number in changed if not any(check(number) for check in checks))


def test_every_form_finds_its_example_and_passes_a_lookalike():
    for row in FORMS:
        assert row["name"] in names(row["example"]), row
        assert row["name"] not in names(row["not"]), row


def test_every_number_is_found_next_to_each_of_its_labels():
    for row in NUMBERS:
        labels = [label.replace("*", "") for label in split_entries(row["labels"]) if label != "-"]
        assert [label for label in labels if not names(f"{label} {row['example']}")] == [], row


def test_numbers_of_a_known_format_need_no_label():
    # Two registers may share a form and a check.
    telling = [row for row in NUMBERS if "shape" in row]
    assert [row for row in telling if not names(f"the number is {row['example']}")] == []


def test_no_number_whose_check_digit_is_wrong_is_found():
    for row in CHECKED:
        label = split_entries(row["labels"])[0].strip("*-")
        assert row["name"] not in names(f"{label} {invalid(row)}"), row


def test_no_label_without_a_number_yields_anything():
    for row in (row for row in NUMBERS if "likely" in row):
        assert [label for label in split_entries(row["labels"]) if names(f"{label.replace('*', '')} pending")] == [], (
            row
        )


@pytest.mark.parametrize(
    "text",
    [
        "SSN{}", "ssn_{}", "my_ssn: {}", '"ssn":"{}"', "employeeSSN={}", "userSsn: {}", "socialSecurityNumber: {}", "S.S.N. {}",
        "SS# {}", "SS no. {}", "soc sec no. {}", "Soc. Sec. No.: {}", "SSN({})", "SSNs {}", "SSN field {}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("number", ["536221234", "536 - 22 - 1234"])
def test_social_security_number_is_found_near_any_label(text, number):
    given = text.format(number)
    assert [given[f.start : f.end] for f in pii.scan(given)] == [number]


def test_a_social_security_number_is_known_by_its_groups():
    assert [
        text
        for text in ["order 536-22-1234", "536-22-1234", "536.22.1234", "invoice 536-22-1234 is due"]
        if names(text) != {"us_ssn"}
    ] == []


def test_a_number_in_other_groups_is_no_social_security_number():
    cases = [
        "version 536.22.1234",
        "536.22.12345",
        "536-22-1234-5",
        "the classname 536221234",
        "536221234",
        "053-00-1234",
        "SS 536 seats",
    ]
    assert [text for text in cases if "us_ssn" in names(text)] == []


@pytest.mark.parametrize(
    ("text", "detector"),
    [
        ("IBAN DE89 3704 0044 0532 0130 00 please", "iban"),
        ("SSN 536-22-1234", "us_ssn"),
        ("call +49 30 901820", "phone"),
        ("passport C01234567", "passport"),
        ("CPF 529.982.247-25", "br_cpf"),
        ("身份证号 11010519491231002X", "cn_resident_id"),
        ("client 84.117.45.12 logged in", "ip_address"),
        ("SSN is 375 94 9669", "us_ssn"),
        ("SSN is 375949669", "us_ssn"),
        ("card 180059304240250", "payment_card"),
        ("call 458-717-0057x225", "phone"),
        ("passport E23905143", "passport"),
    ],
)
def test_an_identifier_is_found(text, detector):
    assert [f.detector for f in pii.scan(text)] == [detector]


def test_a_lookalike_yields_nothing():
    cases = [
        "order 123456789",
        "v1.2.3.4 released",
        "order 4111111111111111",
        "card 4111 1111 1111 1112",
        "52.520008, 13.404954",
        "tracking number 1Z999AA10123456784",
        "584570583388",
        "the company 584570583388",
        "MAC 3c:22:fb:9a:10:4e",
    ]
    assert [text for text in cases if pii.scan(text)] == []


def test_fullwidth_digits_count_as_digits():
    assert [f.detector for f in pii.scan("card ４１１１１１１１１１１１１１１１")] == ["payment_card"]


@pytest.mark.parametrize("domain", ["example.xn--p1ai", "a.b.c.d.e.f.g.h.org", "b" * 70 + ".org", "пример.рф"])
def test_all_of_an_address_is_taken_out(domain):
    text = f"mail jo.doe@{domain} today"
    assert [text[f.start : f.end] for f in pii.scan(text)] == [f"jo.doe@{domain}"]
