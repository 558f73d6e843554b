"""Word lists of the analyser: what says nothing, and which forms share a word.

Invariants
(1) every entry is lower-case ASCII; the analyser folds before it looks here.
(2) IRREGULAR maps a form to a base that the stemmer can go on with; a base never maps further.
"""

from typing import Final

_ENGLISH: Final = """
    a about above after again against all also am an and any are aren as at be because been before being below
    between both but by can cannot could couldn did didn do does doesn doing don down during each few for from
    further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is
    isn it its itself just let ll me might more most must mustn my myself needn no nor not now of off on once
    only or other ought our ours ourselves out over own re same shall shan she should shouldn so some such than
    that the their theirs them themselves then there these they this those through to too under until up upon
    ve very was wasn we were weren what when where which while who whom whose why will with won would wouldn
    you your yours yourself yourselves im ive id youre dont didnt doesnt isnt wasnt cant s t d m
    hi hey hello thanks thank yeah yes oh ok okay wow really please
"""
#: English only: in other languages a common word weighs little by its frequency, and a list of ours lost recall
#: on German notes.
STOP_WORDS: Final[frozenset[str]] = frozenset(_ENGLISH.split())

_FAMILIES: Final = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun|bend bent
bet|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken|breed bred|bring brought
broadcast|build built|burn burnt|buy bought|catch caught|choose chose chosen|cling clung|come came
creep crept|deal dealt|dig dug|dive dove|draw drew drawn|dream dreamt|drink drank drunk|drive drove driven
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fly flew flown
forbid forbade forbidden|forecast|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
get got gotten|give gave given|go went gone|grind ground|grow grew grown|hang hung|hear heard
hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|leap leapt
learn learnt|leave left|lend lent|lie lain|light lit|lose lost|make made|mean meant|meet met|mow mown
overcome overcame|pay paid|prove proven|rebuild rebuilt|ride rode ridden|ring rang rung|rise rose risen
run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn|shake shook shaken|shine shone
shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
speak spoke spoken|spell spelt|spend spent|spill spilt|spin spun|spring sprang sprung|stand stood
steal stole stolen|stick stuck|sting stung|strike struck|strive strove striven|swear swore sworn
sweep swept|swell swollen|swim swam swum|swing swung|take took taken|teach taught|tear tore torn
tell told|think thought|throw threw thrown|understand understood|undertake undertook undertaken
wake woke woken|wear wore worn|weave wove woven|weep wept|win won|wind wound|withdraw withdrew withdrawn
write wrote written
child children|man men|woman women|person people|foot feet|tooth teeth|goose geese|mouse mice|ox oxen
wife wives|life lives|knife knives|leaf leaves|half halves|shelf shelves|wolf wolves|thief thieves|loaf loaves
criterion criteria|datum data|analysis analyses|crisis crises|thesis theses|diagnosis diagnoses
index indices|matrix matrices|appendix appendices|phenomenon phenomena|medium media
bad worse worst|good better best|far farther further
mom mum mother|dad father|kid child|photo photograph pic picture|bike bicycle|fridge refrigerator|tv television
colour color|favourite favorite|behaviour behavior|neighbour neighbor|centre center|theatre theater
grey gray|travelled traveled|organise organize|realise realize|programme program
"""


def _irregular() -> dict[str, str]:
    forms: dict[str, str] = {}
    for family in _FAMILIES.replace("\n", "|").split("|"):
        words = family.split()
        for form in words[1:]:
            forms.setdefault(form, words[0])
    return {form: forms.get(base, base) for form, base in forms.items() if form != forms.get(base, base)}


#: Irregular form -> base, both lower-case.
IRREGULAR: Final[dict[str, str]] = _irregular()
