"""Structured personal identifiers in notes, and numbers that only look like them.

Check digits are computed here, apart from the code that is measured.
"""

# ruff: noqa: E501, SIM905

from __future__ import annotations

import random
from collections.abc import Iterator

from evals.sets.case import Case
from evals.sets.ordinary import HARD, ordinary

_D = "0123456789"


def _digits(rnd: random.Random, count: int) -> str:
    return "".join(rnd.choices(_D, k=count))


def _luhn(body: str) -> str:
    total = 0
    for index, char in enumerate(reversed(body)):
        value = int(char) * (2 if index % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return body + str(-total % 10)


def card(rnd: random.Random) -> str:
    """A card number of a random issuer, sometimes grouped."""
    prefix, size = rnd.choice(
        (("4", 16), ("51", 16), ("55", 16), ("37", 15), ("6011", 16), ("4", 16), ("3530", 16), ("36", 14))
    )
    number = _luhn(prefix + _digits(rnd, size - len(prefix) - 1))
    if size == 16 and rnd.random() < 0.6:
        return rnd.choice(" -").join(number[i : i + 4] for i in range(0, 16, 4))
    return number


def iban(rnd: random.Random) -> str:
    """An IBAN of one of six countries, sometimes grouped."""
    country, size, letters = rnd.choice(
        (("DE", 18, 0), ("FR", 23, 0), ("GB", 14, 4), ("NL", 10, 4), ("ES", 20, 0), ("AT", 16, 0))
    )
    body = "".join(rnd.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=letters)) + _digits(rnd, size)
    number = int("".join(str(int(c, 36)) for c in body + country + "00"))
    value = f"{country}{98 - number % 97:02}{body}"
    return " ".join(value[i : i + 4] for i in range(0, len(value), 4)) if rnd.random() < 0.6 else value


def _cpf(rnd: random.Random) -> str:
    body = [rnd.randrange(10) for _ in range(9)]
    for weight in (10, 11):
        rest = sum(d * (weight - i) for i, d in enumerate(body)) * 10 % 11 % 10
        body.append(rest)
    text = "".join(map(str, body))
    return f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"


def _pesel(rnd: random.Random) -> str:
    body = f"{rnd.randrange(50, 99)}{rnd.randrange(1, 13):02}{rnd.randrange(1, 29):02}{_digits(rnd, 4)}"
    total = sum(int(c) * w for c, w in zip(body, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), strict=True))
    return body + str(-total % 10)


def _bsn(rnd: random.Random) -> str:
    while True:
        body = "1" + _digits(rnd, 7)
        rest = sum(int(c) * (9 - i) for i, c in enumerate(body)) % 11
        if rest < 10:
            return body + str(rest)


def _dni(rnd: random.Random) -> str:
    number = rnd.randrange(10_000_000, 99_999_999)
    return f"{number}{'TRWAGMYFPDXBNJZSQVHLCKE'[number % 23]}"


def _nir(rnd: random.Random) -> str:
    body = f"{rnd.choice('12')}{rnd.randrange(40, 99)}{rnd.randrange(1, 13):02}{rnd.randrange(1, 20) + 30:02}{_digits(rnd, 3)}{rnd.randrange(1, 999):03}"
    value = f"{body}{97 - int(body) % 97:02}"
    return " ".join((value[0], value[1:3], value[3:5], value[5:7], value[7:10], value[10:13], value[13:]))


def _nhs(rnd: random.Random) -> str:
    while True:
        body = "4" + _digits(rnd, 8)
        check = 11 - sum(int(c) * (10 - i) for i, c in enumerate(body)) % 11
        if check != 10:
            value = body + str(check % 11)
            return f"{value[:3]} {value[3:6]} {value[6:]}"


def _cn(rnd: random.Random) -> str:
    body = f"110105{rnd.randrange(1950, 2005)}{rnd.randrange(1, 13):02}{rnd.randrange(1, 29):02}{_digits(rnd, 3)}"
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return body + "10X98765432"[sum(int(c) * w for c, w in zip(body, weights, strict=True)) % 11]


def _sin(rnd: random.Random) -> str:
    value = _luhn("4" + _digits(rnd, 7))
    return f"{value[:3]} {value[3:6]} {value[6:]}"


def _personnummer(rnd: random.Random) -> str:
    value = _luhn(f"{rnd.randrange(50, 99)}{rnd.randrange(1, 13):02}{rnd.randrange(1, 29):02}{_digits(rnd, 3)}")
    return f"{value[:6]}-{value[6:]}"


def _ssn(rnd: random.Random) -> str:
    return f"{rnd.choice((123, 234, 401, 512, 623, 712))}-{rnd.randrange(10, 99)}-{rnd.randrange(1000, 9999)}"


def _ssn_written(rnd: random.Random) -> str:
    value = _ssn(rnd)
    return rnd.choice([value.replace("-", mark) for mark in ("", " ", ".")])


def _generated_card(rnd: random.Random) -> str:
    """A card number as generators of test data make them, of short and of rare kinds too."""
    kinds = (
        ("4", 13),
        ("4", 19),
        ("2131", 15),
        ("1800", 15),
        ("5018", 12),
        ("6304", 12),
        ("6759", 13),
        ("57", 12),
        ("300", 14),
        ("309", 14),
    )
    prefix, size = rnd.choice(kinds)
    return _luhn(prefix + _digits(rnd, size - len(prefix) - 1))


def _extension(rnd: random.Random) -> str:
    area, line = rnd.randrange(201, 999), f"{rnd.randrange(200, 999)}-{_digits(rnd, 4)}"
    number = rnd.choice(
        (
            f"({area}){line}",
            f"{area}-{line}",
            f"001-{area}-{line}",
            f"+1-{area}-{line}",
            f"{area}-{line}".replace("-", "."),
        )
    )
    return number + rnd.choice(("", f"x{_digits(rnd, 3)}", f"x{_digits(rnd, 5)}", f" ext. {_digits(rnd, 3)}"))


def _email(rnd: random.Random) -> str:
    return f"{rnd.choice('dana omar priya lukas.b j_smith mei+news'.split())}@{rnd.choice('example.org mail.example.com firma.de uni-graz.at acme.co.uk'.split())}"


def _phone(rnd: random.Random) -> str:
    return rnd.choice(
        (
            f"+49 30 {_digits(rnd, 7)}",
            f"+1 212 {rnd.randrange(200, 999)} {_digits(rnd, 4)}",
            f"+44 20 7946 0{_digits(rnd, 3)}",
            f"+33 6 {rnd.randrange(10, 99)} {_digits(rnd, 2)} {_digits(rnd, 2)} {_digits(rnd, 2)}",
            f"(415) {rnd.randrange(200, 999)}-{_digits(rnd, 4)}",
            f"+91 98{_digits(rnd, 8)}",
            f"+34 6{_digits(rnd, 8)}",
        )
    )


def _national(rnd: random.Random) -> str:
    return rnd.choice(
        (
            f"030 {_digits(rnd, 7)}",
            f"0171 {_digits(rnd, 7)}",
            f"212-{rnd.randrange(200, 999)}-{_digits(rnd, 4)}",
            f"07700 900{_digits(rnd, 3)}",
            f"06 {rnd.randrange(10, 99)} {_digits(rnd, 2)} {_digits(rnd, 2)} {_digits(rnd, 2)}",
        )
    )


_GROUPS = {
    "iban": (iban, ("IBAN {v}", "Refund goes to {v}.", "account {v} (Dana)", "Bitte auf {v} überweisen", "pay rent to {v} monthly", "{v}")),
    "card": (card, ("card {v}", "Her Visa is {v}, exp 09/27", "pay with {v}", "credit card number: {v}", "carte bancaire {v}", "{v} is the company card")),
    "ssn": (_ssn, ("SSN {v}", "her social security number is {v}", "{v} is on the form", "ssn: {v}")),
    "ssn_written": (_ssn_written, ("SSN is {v}", "my social is {v}", "social security number: {v}", "the SSN he gave me: {v}")),
    "card_generated": (_generated_card, ("card {v}", "my card is {v}", "pay with {v}", "credit card number {v}", "please charge {v} for the order")),
    "phone_extension": (_extension, ("call {v}", "{v} is the office line", "text {v} when you land", "phone: {v}")),
    "before_its_name": (lambda r: f"{r.choice('ACEK')}{_digits(r, 8)}", ("{v} is my passport number", "{v} is her driver's license", "{v} was Dana's passport")),
    "account": (lambda r: r.choice((_digits(r, 10), f"WGYY5{_digits(r, 13)}")), ("account number {v}", "bank account {v}", "acct {v}")),
    "ipv6": (lambda r: ":".join(f"{r.randrange(256, 65535):x}" for _ in range(8)), ("logged in from {v}", "{v}")),
    "email": (_email, ("write to {v}", "Contact: {v}", "Dana <{v}>", "cc {v}, please", "E-Mail an {v}", "{v}的邮箱")),
    "phone": (_phone, ("call {v}", "Dana: {v}", "{v} after six", "reach him at {v}", "Tel. {v}", "sms to {v}.")),
    "phone_national": (_national, ("phone {v}", "Telefon: {v}", "mobile: {v}", "his phone number is {v}", "tel {v}", "WhatsApp {v}")),
    "cpf": (_cpf, ("CPF {v}", "o CPF dela é {v}", "{v}")),
    "pesel": (_pesel, ("PESEL {v}", "pesel: {v}", "numer PESEL to {v}")),
    "bsn": (_bsn, ("BSN {v}", "mijn BSN is {v}", "burgerservicenummer: {v}")),
    "dni": (_dni, ("DNI {v}", "su DNI es {v}", "{v}")),
    "nir": (_nir, ("numéro de sécurité sociale {v}", "NIR : {v}", "{v}")),
    "nhs": (_nhs, ("NHS number {v}", "her NHS no is {v}", "NHS: {v}")),
    "cn": (_cn, ("身份证号 {v}", "身份证：{v}", "ID {v}")),
    "sin": (_sin, ("SIN {v}", "social insurance number: {v}", "my SIN is {v}")),
    "personnummer": (_personnummer, ("personnummer {v}", "{v}", "hennes personnummer är {v}")),
    "passport": (lambda r: f"C{_digits(r, 8)}", ("passport {v}", "Passport No: {v}", "her passport number is {v}", "Reisepass {v}", "pasaporte {v}")),
    "ip": (lambda r: f"{r.choice((84, 91, 151, 203))}.{r.randrange(32, 255)}.{r.randrange(1, 255)}.{r.randrange(1, 255)}", ("logged in from {v}", "client IP {v}", "his home address on the net is {v}", "{v} was blocked")),
    "nino": (lambda r: f"{r.choice(('AB', 'CE', 'JK', 'PR'))} {_digits(r, 2)} {_digits(r, 2)} {_digits(r, 2)} {r.choice('ABCD')}", ("NI number {v}", "National Insurance: {v}", "{v}")),
}  # fmt: skip

LOOKALIKES: tuple[str, ...] = (
    "order {d9}", "Order number {d9} shipped", "order #{d16}", "timestamp {t13}", "at {t13} the job began", "ticket 2024-{d6}", "version {a}.{b}.{c}.{e}", "v{a}.{b}.{c}", "firmware {a}.{b}.{c}.{e} installed",
    "ISBN 978-3-16-{d6}-0", "ISBN-13: 9783{d9}", "tracking number {d12}", "tracking 1Z{d3}AA1{d9}", "UPS {d9}{d9}", "coordinates {f}, {g}", "lat={f} lon={g}", "row {d9} of {d12}", "hash {h40}", "sha {h64}",
    "part no. {d3}-{d2}-{d4}x", "git@github.com:acme/{d3}.git", "@types/node@18.{d2}.0", "3.14159265358979", "2^{d2} = {d12}", "serial SN-{d9}", "invoice {d4}/{d4}", "batch {d6}-{d3}", "listening on 192.168.{a}.{b}:8080", "127.0.0.1 and 10.{a}.{b}.{c}",
    "epoch {t10}", "{t10}.{d6} UTC", "duration {d6} ms, {d9} rows", "chapter {a}.{b}.{c}.{e}", "page {d3}-{d3}", "score 21-{d2}", "IMG_{d8}_{d6}.jpg", "port {d4}, pid {d6}", "room 4-{d3}-{d2}", "model GT-{d4}-{d4}", "case {d2}-{d4}-{d3}",
    "EAN 40{d9}1", "SKU {d3}-{d4}-{d4}", "build {d8}.{d2}", "commit {h7}", "uuid {h8}-{h4}-4{h3}-a{h3}-{h12}", "account of what happened in {y}", "{d2}.{d2}.{y}", "{y}-11-{d2}T08:{d2}:00Z", "population {d3},{d3},{d3}", "budget 1.{d3}.{d3},{d2} EUR", "$ {d3},{d3}.{d2}",
    "doi:10.1000/{d6}", "arXiv:24{d2}.{d5}", "RFC {d4}, section {a}.{b}", "issue #{d5}", "lot {d6}/{d4}", "thread {t10}.{d6}", "{d3}x{d3}x{d3} mm", "{d4} x {d4} px", "subnet mask 255.255.255.0", "DNS 8.8.8.8 and 1.1.1.1", "logo@2x.png", "meeting id {d3} {d4} {d4}",
    "parcel {d20} left the depot", "job {d16} finished", "card sorting with {d2} participants", "the {d2} IBANs were checked", "phone screen {d3} ppi", "salary run on {y}-03-{d2}", "social media post {d9}", "dl {d8} bytes", "account {d6} is over its limit", "fingerprint {h2}:{h2}:{h2}:{h2}:{h2}:{h2}", "charge {d3}.{d2} for postage", "discover {d3} more", "extension {d4} of the desk", "MAC {h2}:{h2}:{h2}:{h2}:{h2}:{h2}", "room {d3}-{d3} is free", "call {d2} times a day", "tel aviv office, {d3} people", "born to code since {y}", "passport control took {d2} minutes",
)  # fmt: skip


def _look(template: str, rnd: random.Random) -> str:
    out = template
    for _ in range(8):
        start = out.find("{")
        if start < 0:
            break
        end = out.index("}", start)
        name = out[start + 1 : end]
        if name[0] == "d" and name[1:]:
            value = rnd.choice("123456789") + _digits(rnd, int(name[1:]) - 1)
        elif name[0] == "h":
            value = "".join(rnd.choices("0123456789abcdef", k=int(name[1:])))
        else:
            value = {
                "t13": str(rnd.randrange(15 * 10**11, 19 * 10**11)),
                "t10": str(rnd.randrange(15 * 10**8, 19 * 10**8)),
                "f": f"{rnd.uniform(-80, 80):.6f}",
                "g": f"{rnd.uniform(-179, 179):.6f}",
                "y": str(rnd.randrange(1990, 2027)),
            }.get(name) or str(rnd.randrange(1, 30))
        out = out[:start] + value + out[end + 1 :]
    return out


def cases() -> Iterator[Case]:
    """Yield identifiers, look-alikes and ordinary notes."""
    rnd = random.Random(11)
    for name, (build, notes) in _GROUPS.items():
        for index, note in enumerate(notes):
            for number in range(12):
                text = note.replace("{v}", build(rnd))
                yield Case(group=f"id_{name}", wording=f"{index}", number=number, text=text, wanted=True)
    for index, template in enumerate(LOOKALIKES):
        for number in range(25):
            yield Case(group="look_alike", wording=f"{index}", number=number, text=_look(template, rnd), wanted=False)
    yield from (case for case in ordinary(copies=20) if HARD)
