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
        ("client e9c2:ebd6:f910:9756:e60d:8392:df57:1297 logged in", "ip_address"),
        ("SSN is 375 94 9669", "us_ssn"),
        ("SSN is 375.94.9669", "us_ssn"),
        ("SSN is 375949669", "us_ssn"),
        ("my social is 375949669", "us_ssn"),
        ("SSN is three seven five dash nine four dash nine six six nine", "spelt_number"),
        ("card 180059304240250", "payment_card"),
        ("card number 584570583388", "payment_card"),
        ("call 458-717-0057x225", "phone"),
        ("call 001-381-896-1220x9832", "phone"),
        ("born on 13-Aug-1989", "date_of_birth"),
        ("passport E23905143", "passport"),
        ("A22438749 is my passport number", "personal_number"),
        ("send it to 1BoatSLRHtKNngkdXEeobR76b53LETtpyT", "wallet_address"),
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
        "584570583388",
        "social media post 375949669",
        "the company 584570583388",
        "salary run on 2019-03-10",
        "MAC 3c:22:fb:9a:10:4e",
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
