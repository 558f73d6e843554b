"""Replace the first person and "the user" in a text by a name, so that its vector is close to questions with the name.

English has rules for the most frequent verbs. Other languages only have a table of pronouns, without grammar. The
resulting text is embedded, never shown or stored.
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
    """Replace English "I", "my" and "me" by the name, and adapt the most frequent verbs."""
    text = text.replace("’", "'")
    for pattern, form in _FIRST_PERSON:
        text = pattern.sub(lambda _, form=form: form.format(name), text)  # type: ignore[misc]
    return text


def with_name(text: str, name: str) -> str | None:
    """Return a text with the name in place of "I", "the user" and similar words; None if it has none of them."""
    plain = text.replace("’", "'")
    named = _OTHERS.sub(
        lambda match: f"{name} " if match[0].endswith("'") else name,
        _THE_USER.sub(lambda _: name, third_person(plain, name)),
    )
    return named if named != plain else None
