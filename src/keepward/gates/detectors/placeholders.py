"""Values that are written where a secret goes and are none: placeholders, test values, names, published examples.

Example: in ``password: "Test1234!"``, ``postgres://demo:demo@localhost`` and ``API_KEY = os.environ["API_KEY"]`` the
value opens nothing. A documented format of a provider is never excused here.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable
from typing import Any

from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.tables import split_entries

#: Detectors of a place and not of a format: whatever is written there is found.
_OF_A_PLACE = frozenset(
    (
        *("url_credential", "url_token", "connection_string", "connection_call", "database_call", "bearer_token"),
        *("authorization_header", "command_credential", "pgpass_credential", "netrc_credential", "element_password"),
        *("answer_file_password", "powershell_credential", "registry_credential", "framework_secret"),
    )
)
#: Words of which placeholders and test values are made: ``my-test-secret``, ``wrongPassword1``.
_WORDS = """
    a | abc | access | actual | admin | airflow | alice | ansible | any | api | app | argon2 | argon2i | argon2id
    | auth | bad | bar | base32 | base64 | baz | bcrypt | bearer | bit | bits | bob | change | changed | changeit
    | changeme | client | code | common | correct | credential | credentials | cypress | database | db | default |
    demo | deploy | dev | development | django | do | dont | drupal | dummy | e2e | elastic | empty | enter |
    example | expired | fake | fill | first | flask | foo | foobar | for | from | generated | good | grafana |
    guest | hash | hashed | here | hidden | hunter | id | in | incorrect | insecure | insert | integration |
    invalid | it | jenkins | joomla | jwt | kafka | key | keycloak | laravel | letmein | local | localhost |
    localstack | log | login | long | me | minio | minioadmin | mock | mocked | mongo | mongodb | my | mysql |
    name | new | nextauth | not | of | old | only | or | oracle | p4ssw0rd | p4ssword | p@ss | p@ssw0rd | p@ssword
    | pa55word | pass | passphrase | passw0rd | passwd | password | paste | pbkdf2 | please | postgres |
    postgresql | private | prod | production | public | put | pw | pwd | qa | qwerty | rabbit | rabbitmq | rails |
    random | randomly | real | redacted | redis | refresh | replace | right | root | s3cr3t | s3cret | sa | salt |
    sample | sandbox | scrypt | second | secret | secretpassword | secrets | secure | service | session | set |
    sha | sha256 | shared | should | sign | signing | some | someone | something | sonar | spring | stage |
    staging | store | strapi | string | strong | super | supersecret | superset | superuser | symfony | sys |
    system | temp | temporary | test | tested | tester | testing | tests | text | the | this | tmp | to | todo |
    token | top | topsecret | unit | unsafe | unused | use | user | user1 | username | valid | value | verify |
    very | weak | webhook | with | word | wordpress | wrong | xxx | xxxx | you | your | yours | yourself | zabbix
"""
#: Numbers that follow such words: ``password123``. A year is not among them.
_COUNT = "(?:0|00|000|007|01|02|1|12|123[4-9]*0?|2|21|3|321|32|42|64|99|256|512|[1-9][0-9]{1,3}000)"
_ROWS = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890123456789",
    "0123456789abcdef0123456789abcdef",
    "qwertyuiopasdfghjklzxcvbnm",
)
_SIX_IN_A_ROW = frozenset(
    way[start : start + 6] for row in _ROWS for way in (row, row[::-1]) for start in range(len(row) - 5)
)
#: Values that are read from elsewhere, or name what holds them.
_READ = lazy_regex(
    r"(?:process\.env|import\.meta|Deno\.env|os\.|System\.|Rails\.|ENV\b|env\(|getenv|config\(|settings\.|secrets\.|vars?\."
    r"|self\.|this\.|req\.|request\.|[$%<{[(]).*"
)
#: A line of settings up to its value.
_SETTING = lazy_regex(r"[ \t-]*[\w.]+[ \t]*[:=][ \t]*['\"]?\Z")
#: What comes before a literal of code.
_LITERAL = lazy_regex(r"(?:[=(\[{,]|\w['\"]?\s?:|=>)\s*['\"`]\Z")
#: A piece of a key block's body.
_BODY = lazy_regex(r"[A-Za-z0-9+/=]{16,}")
_ESCAPES = lazy_regex(r"(?:\\[xuU]?[0-9A-Za-z]{1,8})+")
_COMMAND = lazy_regex(
    r"(?:sudo |\$ )?(?:aws|az|bash|bin|brew|bundle|cargo|cat|chmod|composer|curl|django-admin|docker|echo|export|flask"
    r"|gcloud|gem|gh|git|go|gpg|helm|heroku|htpasswd|java|jq|jupyter|kubectl|make|mkpasswd|mysql|mysqldump|node|npm|npx"
    r"|openssl|pass|php|pip|pipx|pnpm|poetry|psql|pwgen|pytest|python3?|rails|rake|redis-cli|ruby|ssh|ssh-keygen"
    r"|systemctl|terraform|uv|uuidgen|vault|wget|yarn)(?: .*)?"
)
_DIGEST = lazy_regex(r"(?:sha\d{1,3}|md5|blake2b)[:-].*", re.IGNORECASE)
_HEX = lazy_regex("[0-9A-Fa-f]+")
_SECRET_WORD = lazy_regex("key|token|secret|passw|pwd", re.IGNORECASE)
_GNUPG = lazy_regex(r"\bgpg|GPG|PGP\b")
_FENCE = lazy_regex("```")
#: Longer values are made by a generator.
_LONGEST = 120
#: Findings of one text that are looked at.
_MOST = 100
#: Characters around a value that are looked at, and those of its line before it.
_NEAR, _LINE = 200, 2_000


class _Sample:
    """A text around findings; what is asked for many of them is worked out once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @functools.cached_property
    def fences(self) -> list[int]:
        """Places of the marks that open and close blocks of code."""
        return [match.start() for match in _FENCE.finditer(self.text)]

    def before(self, start: int, size: int) -> str:
        """Return up to so many characters before a place."""
        return self.text[max(0, start - size) : start]

    def line_before(self, start: int) -> str:
        """Return the line up to a place, of a long line its last part."""
        return self.before(start, _LINE).rpartition("\n")[2]

    def is_code(self, start: int) -> bool:
        """Whether a place is in a fenced block of code, or between backticks."""
        line = self.line_before(start)
        return bisect.bisect(self.fences, start - 1) % 2 == 1 or line.count("`") % 2 == 1


def drop_placeholders(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Drop what detectors found in a text that is no secret; in a flood of findings the first ones are looked at."""
    sample = _Sample(text)
    return [each for count, each in enumerate(findings) if count >= _MOST or not _is_placeholder(sample, each)]


def _is_placeholder(sample: _Sample, finding: Finding) -> bool:
    start, value = finding.start, sample.text[finding.start : finding.end]
    if not value:
        return True
    if finding.detector == "password_hash":
        return is_sequential(value)
    if finding.detector == "private_key":
        return value[0] == "-" and not any(map(_is_mixed, _BODY.findall(value)))
    likely = finding.certainty == "likely"
    if len(value) > _LONGEST or not (likely or finding.detector in _OF_A_PLACE):
        return False
    told = finding.detector == "told_secret"
    literal = _LITERAL.search(sample.before(start, _NEAR)) is not None
    code = not told or literal or sample.is_code(start)
    if has_only_placeholder_words(value.split("&", 1)[0]) or _READ.fullmatch(value):
        return code or _SETTING.match(sample.line_before(start)) is not None
    if likely and code and (is_sequential(value) or _ESCAPES.fullmatch(value) or len(set(value)) == 1):
        return True
    return told and (
        _is_digest(sample, start, value) or is_command_or_digest(value) or sample.before(start, 3) == "```"
    )


@functools.cache
def _made_up() -> Any:
    import re2

    options = re2.Options()
    options.never_capture = True
    words = "|".join(re2.escape(word) for word in split_entries(_WORDS))
    return re2.compile(rf"(?i)^[^A-Za-z0-9]*(?:(?:{words})[^A-Za-z0-9]*(?:{_COUNT}[^A-Za-z0-9]*)?)+$", options)


def has_only_placeholder_words(value: str) -> bool:
    """Whether a value has only placeholder words, such as ``your-secret-key``."""
    return _made_up().match(value) is not None


def _is_mixed(value: str) -> bool:
    return all(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))


def is_sequential(value: str) -> bool:
    """Whether most characters follow the one before, in the alphabet or on a keyboard: ``0123456789abcdef``."""
    lowered, place, in_rows = value.lower(), 0, 0
    while place < len(lowered):
        size = 0
        if lowered[place : place + 6] in _SIX_IN_A_ROW:
            size = next(n for n in range(len(lowered) - place, 5, -1) if _in_a_row(lowered[place : place + n]))
        in_rows += size
        place += size or 1
    return in_rows * 10 >= len(value) * 7


def _in_a_row(part: str) -> bool:
    return len(part) <= 32 and any(part in row or part in row[::-1] for row in _ROWS)


def _is_digest(sample: _Sample, start: int, value: str) -> bool:
    """Whether a value is a commit, a checksum or the id of a key of GnuPG."""
    before = sample.before(start, _NEAR)
    if not _HEX.fullmatch(value) or len(value) not in {16, 40, 64}:
        return False
    if len(value) == 16:
        return _GNUPG.search(sample.before(start, _LINE) + sample.text[start : start + _LINE]) is not None
    return _SECRET_WORD.search(before[-24:]) is None


def is_command_or_digest(value: str) -> bool:
    """Whether a value is a command or a digest: ``openssl rand -hex 32``, ``sha256:4bf5...``."""
    return any(pattern.fullmatch(value) for pattern in (_COMMAND, _DIGEST))
