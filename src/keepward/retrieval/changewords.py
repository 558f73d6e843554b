"""Words by which a text says that something is not as it was.

Invariants
(1) pure, and wrong in both directions at times: what such a word allows is still to be shown by vectors and words.
"""

import re
from typing import Final

_ENGLISH: Final = """
    now|no longer|any ?more|from (?:now|this \\w+|today|next \\w+) on|as of|instead|correction|corrected|nowadays
    changed?|changes|moved?|moving|switched|replaced|upgraded|updated|renamed|rescheduled|postponed|pushed back
    brought forward|slipped|delayed|cancell?ed|called off|stopped|quit|retired|resigned|sold|swapped|gave up|given up
    raised|lowered|cut|increased|decreased|reduced|reached|finished|closed|reopened|left|new|used to|turned out
    decided (?:against|to)|(?:from|since|starting) (?:this|last|next) \\w+
"""
_GERMAN: Final = """
    jetzt|nun|nicht mehr|kein(?:e[nmrs]?)? mehr|ab (?:sofort|heute|jetzt)|seit (?:heute|gestern|kurzem)|statt(?:dessen)?
    korrektur|geändert|umgezogen|gewechselt|ersetzt|verschoben|verlegt|abgesagt|erhöht|gesenkt|verkauft|neue[nmrs]?
"""
_ROMANCE: Final = """
    ya no|ahora|cambi[óoaé]\\w*|en vez de|mudó|mudado|subió|bajó|cancelad[oa]|desde ahora
    maintenant|désormais|ne \\w+ plus|à la place|changé|déménagé|annulée?|remplacée?|augmentée?
    adesso|ora|non più|invece|cambiat[oa]|trasferit[oa]|annullat[oa]|sostituit[oa]
    agora|já não|não \\w+ mais|em vez|mudou|mudaram|cancelad[oa]|substituíd[oa]|aumentou
"""
_DUTCH: Final = """
    nu|niet meer|geen \\w+ meer|voortaan|in plaats van|gewijzigd|verhuisd|vervangen|verplaatst|afgelast|verhoogd
"""
_UNSPACED: Final = (
    "现在|如今|不再|改成|改到|改为|换成|换了|搬到|搬家|取消|推迟|提前|涨到|涨了|降到|"
    "現在|今は|今では|もう.{0,12}ない|変更|変わ|引っ越|移転|中止|延期|値上げ|値下げ|になった|になりました|ことになった"
)


def _words(*lists: str) -> str:
    return "|".join(word for text in lists for word in re.split(r"[|\n]", text.replace("    ", "")) if word)


_CHANGE: Final = re.compile(rf"\b(?:{_words(_ENGLISH, _GERMAN, _ROMANCE, _DUTCH)})\b|{_UNSPACED}", re.IGNORECASE)


def tells_change(text: str) -> bool:
    """Whether a text holds words such as "no longer", "moved" or "instead"."""
    return _CHANGE.search(text) is not None
