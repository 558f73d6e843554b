"""Drops findings that are no secrets: placeholders, demo values, references to variables, commands, digests.

For example, ``postgres://demo:demo@localhost`` and ``API_KEY = os.environ["API_KEY"]`` contain no secret. Findings of
the documented format of a provider are never dropped.

Late imports: few texts need it.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Iterable
from typing import Any

from keepward.core.linear_patterns import compile_str, escape_literal
from keepward.core.patterns import lazy_regex
from keepward.gates.detectors.matcher import Finding
from keepward.gates.detectors.tables import split_entries

#: Detectors of a position instead of a format: any value there is a finding.
_BY_POSITION = frozenset(
    (
        *("url_credential", "url_token", "connection_string", "connection_call", "database_call", "bearer_token"),
        *("authorization_header", "command_credential", "pgpass_credential", "netrc_credential", "element_password"),
        *("answer_file_password", "powershell_credential", "registry_credential", "framework_secret"),
    )
)
#: Words in placeholders and demo values: ``my-test-secret``, ``wrongPassword1``.
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
#: Numbers after such words, but no years: ``password123``.
_COUNT = "(?:0|00|000|007|01|02|1|12|123[4-9]*0?|2|21|3|321|32|42|64|99|256|512|[1-9][0-9]{1,3}000)"
#: The rows of the alphabet and of keyboards, forwards and backwards.
_ROWS = tuple(
    way
    for row in (
        "abcdefghijklmnopqrstuvwxyz",
        "01234567890123456789",
        "0123456789abcdef0123456789abcdef",
        "qwertyuiopasdfghjklzxcvbnm",
    )
    for way in (row, row[::-1])
)
_SIX_IN_A_ROW = frozenset(row[start : start + 6] for row in _ROWS for start in range(len(row) - 5))
#: References to variables and settings instead of values.
_READ = lazy_regex(
    r"(?:process\.env|import\.meta|Deno\.env|os\.|System\.|Rails\.|ENV\b|env\(|getenv|config\(|settings\.|secrets\.|vars?\."
    r"|self\.|this\.|req\.|request\.|[$%<{[(]).*"
)
#: The part of a settings line before its value.
_SETTING = lazy_regex(r"[ \t-]*[\w.]+[ \t]*[:=][ \t]*['\"]?\Z")
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
#: Maximum number of findings of one text that are checked.
_MAX_FINDINGS = 100
#: Maximum characters of the line before a value.
_MAX_LINE_CHARS = 2_000


class _Sample:
    """A text with findings; values for several findings are computed once."""

    def __init__(self, text: str) -> None:
        self.text = text

    @functools.cached_property
    def fences(self) -> list[int]:
        """Positions of the fences of code blocks."""
        return [match.start() for match in _FENCE.finditer(self.text)]

    def before(self, start: int, size: int) -> str:
        """Return up to ``size`` characters before a position."""
        return self.text[max(0, start - size) : start]

    def line_before(self, start: int) -> str:
        """Return the line before a position, of a long line the last part."""
        return self.before(start, _MAX_LINE_CHARS).rpartition("\n")[2]

    def is_code(self, start: int) -> bool:
        """Whether a position is in a code block or between backticks."""
        line = self.line_before(start)
        return bisect.bisect(self.fences, start - 1) % 2 == 1 or line.count("`") % 2 == 1

    def is_digest(self, start: int, value: str) -> bool:
        """Whether a value at a position is a commit, a checksum or the id of a GnuPG key."""
        if not _HEX.fullmatch(value) or len(value) not in {16, 40, 64}:
            return False
        if len(value) == 16:
            around = self.before(start, _MAX_LINE_CHARS) + self.text[start : start + _MAX_LINE_CHARS]
            return _GNUPG.search(around) is not None
        return _SECRET_WORD.search(self.before(start, 24)) is None


def drop_placeholders(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that are no placeholders; only the first ``_MAX_FINDINGS`` are checked."""
    sample = _Sample(text)
    return [each for count, each in enumerate(findings) if count >= _MAX_FINDINGS or not _is_placeholder(sample, each)]


def _is_placeholder(sample: _Sample, finding: Finding) -> bool:
    start, value = finding.start, sample.text[finding.start : finding.end]
    if not value:
        return True
    if finding.detector == "password_hash":
        return is_sequential(value)
    if finding.detector == "private_key":
        return value[0] == "-" and not any(map(_is_mixed, _BODY.findall(value)))
    likely = finding.certainty == "likely"
    if not (likely or finding.detector in _BY_POSITION):
        return False
    in_prose = finding.detector == "told_secret"
    code = not in_prose or sample.is_code(start)
    if has_only_placeholder_words(value.split("&", 1)[0]) or _READ.fullmatch(value):
        return code or _SETTING.match(sample.line_before(start)) is not None
    if likely and code and (is_sequential(value) or _ESCAPES.fullmatch(value) or len(set(value)) == 1):
        return True
    return in_prose and (
        sample.is_digest(start, value) or is_command_or_digest(value) or sample.before(start, 3) == "```"
    )


def made_up_pattern() -> str:
    """Return the pattern of a complete value that has only words of placeholders."""
    words = "|".join(escape_literal(word) for word in split_entries(_WORDS))
    return rf"(?i)^[^A-Za-z0-9]*(?:(?:{words})[^A-Za-z0-9]*(?:{_COUNT}[^A-Za-z0-9]*)?)+$"


@functools.cache
def _made_up() -> Any:
    return compile_str(made_up_pattern())


def has_only_placeholder_words(value: str) -> bool:
    """Whether a value has only placeholder words, such as ``your-secret-key``."""
    return _made_up().match(value) is not None


def _is_mixed(value: str) -> bool:
    return all(any(map(test, value)) for test in (str.islower, str.isupper, str.isdigit))


def is_sequential(value: str) -> bool:
    """Whether most characters are in the order of the alphabet or of a keyboard: ``0123456789abcdef``."""
    lowered, index, in_rows = value.lower(), 0, 0
    while index < len(lowered):
        size = 0
        if lowered[index : index + 6] in _SIX_IN_A_ROW:
            sizes = range(min(32, len(lowered) - index), 5, -1)
            size = next(size for size in sizes if any(lowered[index : index + size] in row for row in _ROWS))
        in_rows += size
        index += size or 1
    return in_rows * 10 >= len(value) * 7


def is_command_or_digest(value: str) -> bool:
    """Whether a value is a command or a digest: ``openssl rand -hex 32``, ``sha256:4bf5...``."""
    return any(pattern.fullmatch(value) for pattern in (_COMMAND, _DIGEST))
