"""Words by which a text says that something is not as it was.

Invariants
(1) pure, and wrong in both directions at times: what such a word allows is still to be shown by vectors and words.
(2) the time a look takes is linear in the text: the patterns are RE2's.
"""

import re
from functools import cache
from typing import Any, Final

_ENGLISH: Final = """
    now|no longer|any ?more|from (?:now|this [\\pL\\pN]+|today|next [\\pL\\pN]+) on|as of|instead|nowadays
    correction|corrected|changed?|changes|moved?|moving|switched|replaced|upgraded|updated|renamed|rescheduled
    postponed|pushed back
    brought forward|slipped|delayed|cancell?ed|called off|stopped|quit|retired|resigned|sold|swapped|gave up|given up
    raised|lowered|cut|increased|decreased|reduced|reached|finished|closed|reopened|left|new|used to|turned out
    decided (?:against|to)|(?:from|since|starting) (?:this|last|next) [\\pL\\pN]+
"""
_GERMAN: Final = """
    jetzt|nun|nicht mehr|kein(?:e[nmrs]?)? mehr|ab (?:sofort|heute|jetzt)|seit (?:heute|gestern|kurzem)|statt(?:dessen)?
    korrektur|geändert|umgezogen|gewechselt|ersetzt|verschoben|verlegt|abgesagt|erhöht|gesenkt|verkauft|neue[nmrs]?
"""
_ROMANCE: Final = """
    ya no|ahora|cambi[óoaé]\\pL*|en vez de|mudó|mudado|subió|bajó|cancelad[oa]|desde ahora
    maintenant|désormais|ne [\\pL\\pN]+ plus|à la place|changé|déménagé|annulée?|remplacée?|augmentée?
    adesso|ora|non più|invece|cambiat[oa]|trasferit[oa]|annullat[oa]|sostituit[oa]
    agora|já não|não [\\pL\\pN]+ mais|em vez|mudou|mudaram|cancelad[oa]|substituíd[oa]|aumentou
"""
_DUTCH: Final = """
    nu|niet meer|geen [\\pL\\pN]+ meer|voortaan|in plaats van|gewijzigd|verhuisd|vervangen|verplaatst|afgelast|verhoogd
"""
_UNSPACED: Final = (
    "现在|如今|不再|改成|改到|改为|换成|换了|搬到|搬家|取消|推迟|提前|涨到|涨了|降到|"
    "現在|今は|今では|もう.{0,12}ない|変更|変わ|引っ越|移転|中止|延期|値上げ|値下げ|になった|になりました|ことになった"
)


def _words(*lists: str) -> str:
    return "|".join(word for text in lists for word in re.split(r"[|\n]", text.replace("    ", "")) if word)


@cache
def _change() -> Any:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.never_capture = True
    # To RE2 a word ends at any letter beyond ASCII, so the ends are spelt out.
    spaced = _words(_ENGLISH, _GERMAN, _ROMANCE, _DUTCH)
    return re2.compile(rf"(?:^|[^\pL\pN])(?:{spaced})(?:$|[^\pL\pN])|{_UNSPACED}", options)


def tells_change(text: str) -> bool:
    """Whether a text holds words such as "no longer", "moved" or "instead"."""
    return _change().search(text.encode("utf-8", "replace").decode()) is not None
