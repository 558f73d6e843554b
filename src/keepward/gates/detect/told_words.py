"""Data for told secrets: how people say that something is a password, in sixteen languages.

Everything is written as ``normal`` leaves it: accents folded for Latin scripts, other scripts as they are.
"""

# ruff: noqa: E501, SIM905, S106

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tongue:
    """How one language tells a secret."""

    #: Words for password and passphrase, RE2 alternation.
    password: str
    #: Words for PIN and door code, RE2 alternation.
    pin: str
    #: Words between the noun and the value: "is", "reads", "was changed to".
    link: str
    #: Lower-case literals, one of which every match holds.
    literals: tuple[str, ...]
    #: Whether words are set apart by blanks.
    spaced: bool = True
    #: Whether nouns end longer words ("WLAN-Passwort", "wifiwachtwoord").
    compounds: bool = False


TONGUES: tuple[Tongue, ...] = (
    Tongue(  # German
        password=r"(?:(?:passwort|passwoerter|kennwort|zugangswort|losungswort|passphrase)|(?:wlan|wifi|wpa|netzwerk|zugangs)-?schlussel|\bpw)",
        pin=r"(?:(?:\bpin|geheimzahl|zugangscode|turcode|tuercode|sicherheitscode|zahlencode|alarmcode|entsperrcode))",
        link=r"(?:lautet|ist|war|heisst|heißt|heist|bleibt|wurde\s+(?:auf|in|zu)|geandert\s+(?:auf|in|zu)|gesetzt\s+auf)",
        literals=(
            "passwort",
            "kennwort",
            "losungswort",
            "pin",
            "geheimzahl",
            "code",
            "passphrase",
            "schlussel",
            "zugangswort",
            "pw",
        ),
        compounds=True,
    ),
    Tongue(  # Spanish
        password=r"(?:contrasena|contrasenya|clave|palabra\s+clave|palabra\s+secreta|frase\s+de\s+contrasena|password)",
        pin=r"(?:pin|codigo\s+(?:pin|de\s+(?:acceso|seguridad|la\s+puerta|la\s+alarma|entrada|desbloqueo))|numero\s+secreto)",
        link=r"(?:es|era|sera|queda|cambiada?\s+a|cambio\s+a|sigue\s+siendo|ahora\s+es)",
        literals=("contrasen", "clave", "palabra secreta", "pin", "codigo", "numero secreto", "password"),
    ),
    Tongue(  # French
        password=r"(?:mot\s+de\s+passe|mdp|code\s+secret|phrase\s+secrete|phrase\s+de\s+passe|cle\s+(?:wifi|wi-fi|wpa|reseau|d'acces))",
        pin=r"(?:code\s+(?:pin|d'acces|d'entree|de\s+la\s+porte|de\s+l'immeuble|de\s+securite|de\s+l'alarme|secret|du\s+portail|de\s+deverrouillage)|digicode|pin)",
        link=r"(?:est|c'est|etait|sera|reste|change\s+en|a\s+ete\s+change\s+en)",
        literals=("mot de passe", "mdp", "code", "phrase", "cle ", "pin"),
    ),
    Tongue(  # Portuguese
        password=r"(?:senha|palavra-passe|palavra\s+passe|palavra-chave\s+secreta|password)",
        pin=r"(?:pin|codigo\s+(?:pin|de\s+(?:acesso|seguranca|entrada|desbloqueio)|da\s+porta|do\s+alarme|do\s+portao)|senha)",
        link=r"(?:e|era|sera|ficou|foi\s+alterada\s+para|mudou\s+para|passou\s+a\s+ser|agora\s+e)",
        literals=("senha", "palavra", "pin", "codigo", "password"),
    ),
    Tongue(  # Italian
        password=r"(?:parola\s+d'ordine|password|parola\s+chiave|chiave\s+(?:wifi|wi-fi|di\s+rete|di\s+accesso)|frase\s+segreta)",
        pin=r"(?:pin|codice\s+(?:pin|di\s+(?:accesso|sicurezza|sblocco)|del\s+(?:cancello|portone|la\s+porta)|della\s+porta|dell'allarme|segreto))",
        link=r"(?:e|era|sara|resta|rimane|e\s+stata\s+cambiata\s+in|cambiata\s+in|adesso\s+e|ora\s+e)",
        literals=("parola", "password", "chiave", "pin", "codice", "frase"),
    ),
    Tongue(  # Dutch
        password=r"(?:wachtwoord|wachtzin|toegangswoord|\bww)",
        pin=r"(?:(?:pincode|\bpin|toegangscode|deurcode|beveiligingscode|alarmcode|kluiscode))",
        link=r"(?:is|was|luidt|blijft|gewijzigd\s+(?:naar|in)|veranderd\s+(?:naar|in))",
        literals=("wachtwoord", "wachtzin", "toegang", "pin", "code"),
        compounds=True,
    ),
    Tongue(  # Polish
        password=r"(?:haslo|hasla|haslem)",
        pin=r"(?:kod\s+(?:pin|dostepu|do\s+\w+|wejsciowy|alarmu)|kod|pin)",
        link=r"(?:to|jest|jest\s+to|brzmi|bylo|zmienione\s+na|zmieniono\s+na|jest\s+teraz)",
        literals=("hasl", "kod", "pin"),
    ),
    Tongue(  # Czech, Slovak
        password=r"(?:heslo|heslem|hesla)",
        pin=r"(?:pin|kod\s+(?:k|ke|do|od)\s+\w+|pristupovy\s+kod)",
        link=r"(?:je|bylo|zni|bolo|znie|zmeneno\s+na)",
        literals=("hesl", "pin", "kod"),
    ),
    Tongue(  # Turkish
        password=r"(?:sifre(?:si|m|miz|niz|n)?|parola(?:si|m|miz|niz)?)",
        pin=r"(?:pin(?:\s+kodu)?|kapi\s+kodu|giris\s+kodu|guvenlik\s+kodu|sifre(?:si|m)?)",
        link=r"(?:olarak|su|artik|simdi|ise|budur)?",
        literals=("sifre", "parola", "pin", "kodu"),
    ),
    Tongue(  # Nordic: Danish, Norwegian, Swedish, Finnish
        password=r"(?:losenord(?:et)?|passord(?:et)?|adgangskode(?:n)?|kodeord(?:et)?|salasana(?:ni)?)",
        pin=r"(?:pin-?\s?kod(?:en|e)?|pinkoden?|portkod(?:en)?|dorkode(?:n)?|pin-?koodi|ovikoodi|koden\s+til\s+\w+|koden\s+till\s+\w+)",
        link=r"(?:ar|er|on|lyder|var|oli|blev|endret\s+til|andrat\s+till)",
        literals=("losenord", "passord", "adgangskode", "kodeord", "salasana", "kod", "kode", "koodi"),
        compounds=True,
    ),
    Tongue(  # Romanian, Hungarian, Indonesian, Vietnamese
        password=r"(?:parola|jelszo|jelszavam|kata\s+sandi(?:nya)?|sandi(?:nya)?|mat\s+khau)",
        pin=r"(?:codul?\s+pin|pin-?kod|kode\s+pin|ma\s+pin)",
        link=r"(?:este|e|adalah|ialah|la|az|ez|a\s+kovetkezo)?",
        literals=("parola", "jelsz", "sandi", "khau", "pin"),
    ),
    Tongue(  # Russian, Ukrainian, Bulgarian
        password=r"(?:[Пп]арол[ьяеі]|[Пп]арола(?:та)?|[Кк]одовое слово|[Кк]люч сети)",
        pin=r"(?:[Пп]ин-?\s?код|ПИН|[Кк]од (?:от|для|на|домофона|двери|доступа|подъезда)\s?\w{0,16}|PIN-?код|[Кк]од домофона|пин)",
        link=r"(?:это|был|будет|теперь|сейчас|такой|є|е|на|изменен на|—|–|-)?",
        literals=("парол", "код", "пин", "ключ"),
    ),
    Tongue(  # Chinese
        password=r"(?:密码|密碼|口令|通行码|暗号|密钥|密鑰)",
        pin=r"(?:PIN码|pin码|密码|密碼|门禁码|验证码|驗證碼|解锁码)",
        link=r"(?:是|为|為|改成了|改为|改為|设为|設為|就是|还是|改成|设置为|仍是|叫)?(?:了)?",
        literals=("密码", "密碼", "口令", "通行码", "暗号", "密钥", "密鑰", "pin", "码", "碼"),
        spaced=False,
    ),
    Tongue(  # Japanese
        password=r"(?:パスワード|パスフレーズ|暗証番号|合言葉|パスコード|秘密鍵)",
        pin=r"(?:暗証番号|PIN|ピン|パスコード|PINコード|認証コード|ドアコード)",
        link=r"(?:は|が|を|:|「)?",
        literals=("パス", "暗証番号", "合言葉", "pin", "ピン", "コード", "秘密鍵"),
        spaced=False,
    ),
    Tongue(  # Korean
        password=r"(?:비밀\s?번호|패스워드|암호|비번)",
        pin=r"(?:비밀\s?번호|PIN|핀\s?번호|비번|출입\s?번호|인증\s?번호)",
        link=r"(?:는|은|가|이|를|을)?",
        literals=("비밀", "패스워드", "암호", "비번", "pin", "핀", "번호"),
        spaced=False,
    ),
    Tongue(  # Arabic, Hebrew, Persian
        password=r"(?:كلمة (?:المرور|السر|سر)|كلمة\s?مرور|סיסמה|הסיסמה|סיסמת|סיסמא|رمز عبور|گذرواژه|پسورد|الباسوورد)",
        pin=r"(?:الرقم السري|رمز (?:PIN|الدخول|المرور)|קוד|הקוד|رمز)",
        link=r"(?:هي|هو|היא|הוא|است|:)?",
        literals=("كلمة", "סיסמ", "رمز", "گذرواژه", "پسورد", "الرقم", "קוד", "الباسوورد"),
        spaced=False,
    ),
    Tongue(  # Hindi, Bengali, Thai, Greek
        password=r"(?:पासवर्ड|कूटशब्द|পাসওয়ার্ড|รหัสผ่าน|κωδικος(?:\s+προσβασης)?|κωδικο|συνθηματικο)",
        pin=r"(?:पिन|รหัส|PIN|κωδικος)",
        link=r"(?:है|হল|คือ|ειναι|:)?",
        literals=("पासवर्ड", "कूटशब्द", "পাসওয়ার্ড", "รหัส", "κωδικο", "συνθηματικο", "पिन"),
        spaced=False,
    ),
)

#: What "the password is ..." goes on with when no password follows. Any language, folded, lower case.
NOT_VALUES: frozenset[str] = frozenset(
    """
    a about above absent accepted access account across active actually added admin advised after again ago aligned all
    allowed almost already also always among an and another any anything anywhere apart are around as asked assigned
    at authentication available away back bad banned based basic bcrypt because been before being below best better
    between big blank blocked both broken built but by bypassed cached called can cannot case central changed changing
    characters check checked clear cleartext clean client close code com coming common complete complex compliant
    compromised computed config configured confidential confirmed correct could created credential critical crucial
    current currently dead deleted default delivered denied deprecated derived different difficult digits disabled
    disclosed displayed done down due during each early easier easy either else email emailed embedded empty enabled
    encoded encrypted enforced enough entered env equal essential every everyone everything everywhere exactly expired
    expiring exposed external fake false fetched fine first fixed flagged following for forbidden forced forgotten free
    fresh from fully gated generated getting given global going gone good granted great guessable handled hard hardcoded
    has hashed have held here hidden high his how however identical if ignored illegal important in inactive incorrect
    incomplete injected input insecure inside internal into invalid is issued it its itself just kept key keychain keyed known
    last later leaked least legacy legit less letters like likely limited linked literally local locked logged long longer lost
    low made managed mandatory many masked matched matching maybe me meant mentioned mine minimal minimum missing
    mixed more most moved much must my namespaced necessary needed never new next no nobody nonce none not nothing now null
    numeric obfuscated obsolete obvious of off ok okay old on once one only open optional or other our out outdated over
    owned passed password passwords pending per perfect permanent personal pinned plain plaintext pointless possible
    predictable present printed private probably prohibited prompted protected provided public pulled put quite random
    rarely rather read ready really reasonable recommended recorded redacted refused regenerated rejected released
    renewed repeated replaced requested required reset resolved restricted retired returned reused revoked right rotated
    safe salted same saved secret secrets secure secured see seen sent separate set several shared short should shown shut
    sick similar simple simply single so solid some somehow someone something somewhere soon special specific static
    still stolen stored strict string strong stronger stuck sufficient suitable supplied supposed sure synced taken
    temporary terrible text than that the their them then there these they things this those three through time to
    today tomorrow too tracked transmitted trivial true truncated two typed unavailable unchanged under undefined unique unknown
    unlocked unnecessary unrelated unsafe unset unsupported until unusable up updated upper uppercase used useful useless user
    usually valid validated valuable vault verified very via visible void vulnerable waiting was weak weaker well were
    what when where whether which while who why wide will with within without working would written wrong yet you your
    yours zero yes ask tell contact ping lives sits goes comes changes expires applies begins starts ends works fails
    matters continue proceed match meet comply include use prevent avoid protect ensure keep make log login sign
    unlock recover something stronger complexity hash salt vaulted lastpass bitwarden keepass onepassword
    1password yubikey okta vaultwarden dashlane keychain sso saml oauth oidc jwt md5 n/a tbd see login. gone. optional.
    keeper secretsmanager kms github gitlab kubernetes terraform ansible
    abgelaufen notwendig erforderlich falsch richtig sicher unsicher geheim schwach stark zu nicht noch schon sehr
    gespeichert gehasht verschlusselt lang kurz bekannt unbekannt gultig ungultig leer pflicht optional gesperrt der die das
    ein eine im in am auf bei mit von wie was wenn nur auch dort hier immer mindestens personlich vertraulich
    obligatoria obligatorio requerida segura insegura debil fuerte incorrecta correcta valida invalida secreta larga corta
    muy demasiado necesaria vencida caducada distinta unica igual la el los las un una en de que por para con no ya
    obligatoire requis incorrect faible fort trop tres le les des dans sur pour avec pas plus bien mal confidentiel expire
    obrigatoria forte fraca muito nao uma um em do da com por obbligatoria richiesta scaduta debole sicura troppo non una il
    verplicht vereist verlopen onjuist niet sterk zwak te een het de veilig wymagane bledne silne slabe zbyt nie za w na do
    wygaslo poprawne nieprawidlowe povinne spatne silne zorunlu gerekli yanlis dogru guclu zayif cok degil bir gizli
    nodvandigt felaktigt svagt starkt obligatoriskt pakollinen vaara
    """.split()
)

#: Endings of English participles, adjectives and nouns that describe a password instead of being one.
NOT_ENDINGS: tuple[str, ...] = (
    "ed", "ing", "ly", "able", "ible", "ive", "ous", "less", "ful", "ient", "ent", "ant", "ary", "ory", "ical", "ated",
    "ised", "ized", "tion", "ment", "ness", "ity", "ular", "ence", "ance", "bar", "lich", "tig", "pflichtig",
)  # fmt: skip

#: Nouns people use as passwords although they end like a description.
NOUNS: frozenset[str] = frozenset(
    """dragonfly butterfly firefly family lily molly sally kelly emily billy july italy jelly belly monopoly spring king
    sting viking darling starling duckling sterling elephant giant diamond pheasant olive table cable maple apple bible
    city infinity kitty trinity serenity canary mary rosemary library history story glory victory memory dance romance
    chance renaissance president student serpent crescent moment cement forest rocket wildcat sled seed speed weed reed
    bunny honey money monkey harness princess happiness grateful beautiful wonderful famous octopus darkness""".split()
)

#: Words after "password" that make it part of another noun.
COMPOUNDS: frozenset[str] = frozenset(
    """manager managers policy policies reset resets field fields hash hashes hashing length rule rules generator
    protected protection prompt page form file store vault rotation strength hint requirement requirements change
    changes expiry expiration input box less list lists spray spraying stuffing auth authentication login flow grant
    screen dialog complexity history recovery safe database db column attack attacks cracking cracker based only reuse
    sharing storage error errors validation validator check checker encoder age budget limit limits count counts bucket
    window usage cost costs length-based type types endpoint format refresh lifetime ring rotation""".split()
)
