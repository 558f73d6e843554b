"""Rule pack: key blocks, credentials in URLs and headers, connection strings and command lines."""

# ruff: noqa: E501, SIM905, S105

from __future__ import annotations

from keepward.gates.detect.engine import Rule
from keepward.gates.detect.strength import entropy, placeholder

_HARMLESS = frozenset(
    "password pass passwd pwd user username secret token key guest anonymous postgres root x xx xxx foo bar test git".split()
)


def _password(value: str) -> bool:
    return not placeholder(value) and value.lower() not in _HARMLESS and not value.startswith(("$", "{", "%s", "<"))


def _credential(value: str) -> bool:
    return not placeholder(value) and len(value) >= 8 and entropy(value) >= 2.5 and any(map(str.isdigit, value))


def _block(text: str) -> bool:
    body = "".join(line for line in text.splitlines() if "-----" not in line)
    return "..." not in body and "…" not in body


_USER = r"[^\s/:@\"'<>]{0,80}"
_PASS = r"(?P<v>[^\s/@\"'<>]{3,200})"

BLOCKS: tuple[Rule, ...] = (
    Rule(
        name="private_key",
        literals=("private key",),
        pattern=r"-{3,5}\s?BEGIN[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?\s?-{3,5}[^-]{24,}(?:-{1,2}[^-]+){0,20}(?:-{3,5}\s?END[ A-Z0-9]{0,30}PRIVATE KEY(?: BLOCK)?\s?-{3,5})?",
        check=_block,
        bounded=False,
    ),
    Rule(
        name="private_key",
        literals=("putty-user-key-file",),
        pattern=r"PuTTY-User-Key-File-\d:(?s:.{50,1000}.*?)Private-MAC: [0-9a-f]+",
    ),
    Rule(
        name="private_key",
        literals=(
            "b3blbnnzac1rzxktdjea",
            "miievqibadanb",
            "miieow",
            "miieog",
            "miieqq",
            "miieo",
            "mc4caqawbqydk2vw",
            "migh",
        ),
        pattern=r"(?:b3BlbnNzaC1rZXktdjEA|MIIEv[AQgw]IBADANB|MIIE[opqo][AgwQ]IBAAKCAQEA|MC4CAQAwBQYDK2Vw|MIGHAgEAMBMGByqGSM49)[A-Za-z0-9+/=\s\\]{40,}",
    ),
    Rule(
        name="gcp_service_account",
        literals=("private_key_id",),
        pattern=r"\"private_key_id\"\s*:\s*\"(?P<v>[0-9a-f]{40})\"",
    ),
    Rule(
        name="jwk_private",
        literals=('"kty"',),
        pattern=r"\"kty\"\s*:[^{}]*\"d\"\s*:\s*\"(?P<v>[A-Za-z0-9_-]{30,})\"",
    ),
    Rule(
        name="url_credential",
        literals=("://",),
        pattern=rf"[A-Za-z][A-Za-z0-9+.-]{{1,30}}://{_USER}:{_PASS}@[A-Za-z0-9\[]",
        check=_password,
        bounded=False,
    ),
    Rule(
        name="url_credential",
        literals=("://",),
        pattern=r"https?://(?P<v>[A-Za-z0-9_-]{20,255})@[A-Za-z0-9]",
        check=_credential,
        bounded=False,
    ),
    Rule(
        name="url_token",
        literals=("token=", "key=", "secret=", "sig=", "signature=", "password=", "auth=", "code=", "apikey="),
        pattern=r"[?&#](?i:access_token|refresh_token|id_token|auth_token|token|api_?key|key|client_secret|secret|signature|sig|password|passwd|pwd|auth|X-Amz-Signature|X-Amz-Security-Token)=(?P<v>[A-Za-z0-9._~%+/-]{12,}=*)",
        check=_credential,
    ),
    Rule(
        name="connection_string",
        literals=("password", "pwd"),
        pattern=r"(?i:;|^|[\s\"'])\s?(?i:password|pwd)\s*=\s*(?P<v>[^;\s\"']{3,128});?",
        check=lambda value: (
            _password(value)
            and any(not c.isalpha() for c in value)
            and "(" not in value
            and "[" not in value
            and "." not in value[1:-1]
        ),
        bounded=False,
    ),
    Rule(
        name="authorization_header",
        literals=("bearer", "basic", "authorization", "token", "digest"),
        pattern=r"(?i:authorization|proxy-authorization|x-auth-token|x-api-key|api-key|apikey|x-access-token|private-token|x-vault-token|ocp-apim-subscription-key|dd-api-key|x-shopify-access-token|x-goog-api-key|cookie)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:(?:bearer|basic|token|apikey|bot|negotiate|digest|ssws|splunk|genie-?key)\s+)?(?P<v>[A-Za-z0-9._~+/=-]{8,})",
        check=_credential,
    ),
    Rule(
        name="authorization_header",
        literals=("api-key", "private-token", "subscription-key", "auth-token", "access-token", "cookie", "apikey"),
        pattern=r"(?i:x-api-key|api-key|private-token|[a-z-]+-subscription-key|x-[a-z-]*token|x-[a-z-]*key)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<v>[A-Za-z0-9._~+/=-]{12,})",
        check=_credential,
    ),
    Rule(
        name="bearer_token",
        literals=("bearer",),
        pattern=r"(?i:\bbearer)\s+[\"'`]?(?P<v>[A-Za-z0-9._~+/-]{16,}=*)",
        check=lambda value: _credential(value) and entropy(value) >= 3.2,
    ),
    Rule(
        name="basic_credential",
        literals=("basic",),
        pattern=r"(?i:\bbasic)\s+(?P<v>[A-Za-z0-9+/]{12,}={1,2})",
        check=lambda value: entropy(value) >= 3.0,
    ),
    Rule(
        name="session_cookie",
        literals=("session", "sid", "auth", "jwt"),
        pattern=r"(?i:\b(?:php|j|asp\.net_|connect\.|laravel_|django_)?(?:sess(?:ion)?_?(?:id|token)?|sid)\s?=\s?)(?P<v>[A-Za-z0-9%._~+/-]{20,})",
        check=lambda value: _credential(value) and entropy(value) >= 3.2,
    ),
    Rule(
        name="command_credential",
        literals=(
            "curl",
            "wget",
            "http",
            "sshpass",
            "mysql",
            "psql",
            "mongo",
            "redis-cli",
            "docker",
            "smbclient",
            "ldap",
            "net use",
        ),
        pattern=r"(?:(?i:curl|wget|https?)\b[^\n]{0,200}?\s(?:-u|--user|--auth|-a)[ =][\"']?[^\s:\"']{1,80}:|(?i:sshpass)\s+-p\s*[\"']?|(?i:mysql(?:dump|admin)?|mariadb)\b[^\n]{0,120}?\s-p[\"']?|(?i:redis-cli)\b[^\n]{0,80}?\s-a\s+[\"']?|(?i:smbclient)\b[^\n]{0,120}?-U\s+[\"']?[^\s%]+%|(?i:docker|podman|helm|az|oc|cf|npm)\b[^\n]{0,120}?(?i:\s-p|\s--password|\s--token)[ =][\"']?)(?P<v>[^\s\"'@$<{]{4,120})",
        check=lambda value: (
            _password(value)
            and any(not c.isalpha() for c in value)
            and value[0] not in "-/."
            and "." not in value[:-1]
            and not value.replace(":", "").isdigit()
        ),
        bounded=False,
    ),
    Rule(
        name="command_credential",
        literals=("--password", "--token", "--secret", "--api-key", "--passphrase", "-passin", "--pass"),
        pattern=r"--?(?i:password|passwd|pass|passphrase|token|secret|api-?key|auth-token|access-token|client-secret|secret-key|passin|passout)[ =][\"']?(?:pass:)?(?P<v>[^\s\"'$<{(\[-][^\s\"'<>]{4,200})",
        check=lambda value: (
            _password(value) and any(map(str.isdigit, value)) and "/" not in value[:2] and "." not in value[:2]
        ),
        bounded=False,
    ),
    Rule(
        name="netrc_credential",
        literals=("machine",),
        pattern=r"(?i:\bmachine)\s+\S+\s+(?i:login)\s+\S+\s+(?i:password)\s+(?P<v>\S{3,})",
        check=_password,
        bounded=False,
    ),
    Rule(
        name="htpasswd_hash",
        literals=("$apr1$", "{sha}", "{ssha}"),
        pattern=r"(?:\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|\{S?SHA\}[A-Za-z0-9+/]{27,40}=*)",
        bounded=False,
    ),
    Rule(
        name="pgpass_credential",
        literals=(":5432:", ":5433:", ":6432:", ":*:"),
        pattern=r"[A-Za-z0-9._*-]+:(?:\d{4,5}|\*):[A-Za-z0-9_*-]+:[A-Za-z0-9_.-]+:(?P<v>[^\s:]{4,})",
        check=_password,
        bounded=False,
    ),
)
