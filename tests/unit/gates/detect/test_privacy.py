"""Structured identifiers and their look-alikes."""

import pytest

from keepward.gates.detect import privacy


@pytest.mark.parametrize(
    ("text", "detector"),
    [
        ("IBAN DE89 3704 0044 0532 0130 00 please", "iban"),
        ("card 4111 1111 1111 1111", "payment_card"),
        ("SSN 536-22-1234", "us_ssn"),
        ("mail jo.doe@example.org", "email"),
        ("call +49 30 901820", "phone"),
        ("phone: (212) 555-0187", "phone"),
        ("born on 12 May 1984", "date_of_birth"),
        ("passport C01234567", "passport"),
        ("BSN 111222333", "nl_bsn"),
        ("CPF 529.982.247-25", "br_cpf"),
        ("PESEL 44051401359", "pl_pesel"),
        ("身份证号 11010519491231002X", "cn_resident_id"),
        ("NI number AB123456C", "gb_nino"),
        ("client 84.117.45.12 logged in", "ip_address"),
    ],
)
def test_an_identifier_is_found(text, detector):
    assert [f.detector for f in privacy.scan(text)] == [detector]


@pytest.mark.parametrize(
    "text",
    [
        "order 123456789",
        "at 1700000000123",
        "v1.2.3.4 released",
        "ISBN 978-3-16-148410-0",
        "order 4111111111111111",
        "IBAN DE88 3704 0044 0532 0130 00",
        "card 4111 1111 1111 1112",
        "git@github.com:acme/app.git",
        "52.520008, 13.404954",
        "listening on 192.168.1.7:8080",
        "tracking number 1Z999AA10123456784",
        "BSN 111222334",
    ],
)
def test_a_look_alike_yields_nothing(text):
    assert privacy.scan(text) == []


def test_fullwidth_digits_count_as_digits():
    assert [f.detector for f in privacy.scan("card ４１１１１１１１１１１１１１１１")] == ["payment_card"]


@pytest.mark.parametrize("domain", ["example.xn--p1ai", "a.b.c.d.e.f.g.h.org", "b" * 70 + ".org", "пример.рф"])
def test_the_whole_of_an_address_is_taken_out(domain):
    text = f"mail jo.doe@{domain} today"
    assert [text[f.start : f.end] for f in privacy.scan(text)] == [f"jo.doe@{domain}"]
