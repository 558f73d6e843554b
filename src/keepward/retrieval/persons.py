"""The first person, "the user" and a name as one person: texts with the name in place of the pronoun.

English has rules for the verbs that change most often. Other languages have their pronouns in a table, without
grammar: a text with the name in it is only embedded, never shown or stored.
"""

from typing import Final

from keepward.core.patterns import lazy_regex

_FIRST_PERSON: Final = tuple(
    (lazy_regex(rf"\b(?:{pattern})\b"), form)
    for pattern, form in (
        ("I'm|I am", "{} is"),
        ("I've|I have", "{} has"),
        ("I'd", "{} would"),
        ("I'll", "{} will"),
        ("I", "{}"),
        ("[Mm]y", "{}'s"),
        ("[Mm]ine", "{}'s"),
        ("[Mm]e|[Mm]yself", "{}"),
    )
)
_THE_USER: Final = lazy_regex(r"\b[Tt]he user\b")
#: Pronouns of the first person and words for the user: German, French, Spanish, Portuguese and Italian.
_OTHERS: Final = lazy_regex(
    r"\b(?:"
    r"[Ii]ch|[Mm]ir|[Mm]ich|[Mm]ein(?:e[mnrs]?)?|(?:[Dd]er|[Dd]em|[Dd]en) (?:Be)?[Nn]utzer|[Dd]ie (?:Be)?[Nn]utzerin"
    r"|[Jj]e|[Mm]oi|mon|ma|mes|[Ll]['’]utilisat(?:eur|rice)"
    r"|[Yy]o|mí|mi|mis|conmigo|[Ee]l usuario|[Ll]a usuaria"
    r"|[Ee]u|mim|[Mm]eus?|[Mm]inhas?|comigo|[Oo] (?:usuário|utilizador)|[Aa] (?:usuária|utilizadora)"
    r"|mio|mia|miei|mie|[Ll]['’]utente"
    r")\b|\b[Jj]['’](?=\w)"
)


def third_person(text: str, name: str) -> str:
    """Rewrite English "I", "my", "me" to the name, with the verb forms that change most often."""
    text = text.replace("’", "'")
    for pattern, form in _FIRST_PERSON:
        text = pattern.sub(lambda _, form=form: form.format(name), text)  # type: ignore[misc]
    return text


def with_name(text: str, name: str) -> str | None:
    """Return a text with the name in place of "I", "the user" and the like; None where it speaks of neither."""
    plain = text.replace("’", "'")
    found = _OTHERS.sub(
        lambda match: f"{name} " if match[0].endswith("'") else name,
        _THE_USER.sub(lambda _: name, third_person(plain, name)),
    )
    return found if found != plain else None
