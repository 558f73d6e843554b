"""Words that carry more than their letters: what may be left out, what may not differ.

Data for ``likeness``, in the languages in which it knows negation, units, dates and quantities.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(lines: str) -> dict[str, str]:
    """Read "word synonym synonym, word synonym" into synonym -> word."""
    return {other: group.split()[0] for group in lines.split(",") for other in group.split()[1:]}


def _pairs(text: str) -> list[list[str]]:
    return [pair.split() for pair in text.split(",")]


FILLERS: Final = (
    "the a an is are am be do does of that please really very quite simply just also currently now actually "
    "basically indeed their its der das ein eine le les une el los una"
)
SAME: Final = _table(
    "with using via, in inside, begin start, begins starts, colour color, colours colors, favourite favorite, "
    "behaviour behavior, email e-mail, ok okay, buy purchase, buys purchases, config configuration, "
    "repo repository, big large, 1 one, 2 two zwei deux dos, 3 three drei trois tres, "
    "4 four vier quatre cuatro, 5 five fünf cinq cinco, 6 six sechs seis, 7 seven sieben siete, "
    "8 eight acht huit ocho, 9 nine neun nueve, 10 ten zehn dix diez, 11 eleven, 12 twelve, 13 thirteen, "
    "14 fourteen, 15 fifteen, 16 sixteen, 17 seventeen, 18 eighteen, 19 nineteen, 20 twenty, 30 thirty, "
    "40 forty, 50 fifty, 60 sixty, 70 seventy, 80 eighty, 90 ninety, 100 hundred, 1000 thousand, 0 zero, "
    "s seconds sec secs, min minute minutes mins, h hour hours hr hrs, % percent, "
    "km kilometers kilometres, kg kilograms, ms milliseconds"
)
SAME.update(dict.fromkeys(FILLERS.split(), ""))
SAME.update({"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "n'": "ne"})

NEGATIONS: Final = _words(
    "not no nor neither without nothing nobody nowhere non un kein keine keinen keinem keiner nicht nie niemals "
    "ohne ne pas jamais sans aucun aucune rien nunca sin ningún ninguna ninguno jamás nada "
    "不 没 沒 無 无 非 未 别 別 勿"
)
NEGATIONS_CJK = re.compile("[不没沒無无非未别勿]|ない|なかっ|なく|ません|ぬ")
QUANTIFIERS: Final = _words(
    "all none always never only every each any some most both either few many several least exactly except "
    "sometimes often rarely usually everyone everything alle alles immer nur jeder jede manche tous toutes toujours "
    "seulement chaque todos todas siempre solo sólo cada 都 全 每 毎 只 仅 总 皆"
)
UNITS: Final = _words(
    "ns µs μs ms s min h d day days week weeks month months year years mm cm m km inch ft feet mile miles "
    "mg g kg t lb lbs oz ml l kb mb gb tb KB MB GB TB kB KiB MiB GiB TiB Kb Mb Gb kbit mbit hz Hz khz kHz mhz MHz "
    "ghz GHz w W kw kW mW MW kwh kWh v V % ° °c °f °C °F $ € £ ¥ eur usd gbp EUR USD GBP CHF JPY px pt em rem "
    "bytes byte bits bit tokens rpm fps dollars euros"
)
DATES: Final = _words(
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat january february "
    "april june july august september october november december jan feb mar apr jun jul aug sep sept oct nov "
    "dec today tomorrow yesterday tonight noon midnight morning evening am pm AM PM utc UTC daily weekly monthly "
    "yearly hourly nightly"
)
OPPOSITES: Final = _pairs(
    "enable disable, allow deny, allow forbid, allow block, allow prohibit, permit deny, permit forbid, "
    "accept reject, approve reject, before after, left right, true false, increase decrease, raise lower, "
    "on off, open close, start stop, begin end, begin stop, add remove, include exclude, above below, "
    "over under, up down, max min, maximum minimum, more less, more fewer, high low, first last, like "
    "dislike, love hate, like hate, yes no, public private, internal external, to from, lock unlock, win "
    "lose, pass fail, succeed fail, light dark, hot cold, old new, early late, with without, encrypt "
    "decrypt, push pull, read write, buy sell, show hide, keep discard, can cannot, must may, required "
    "optional, import export, upgrade downgrade, inside outside, same different, safe unsafe, valid "
    "invalid, active inactive, for against "
)
# What may open a phrase that wanders to the front of a sentence without changing who does what to whom.
OPENERS: Final = _words(
    "in on at for with during when while before after if since until by under over inside within from to per "
    "daily weekly monthly today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday "
    "sunday always usually sometimes"
)
JOINTS: Final = frozenset({"and", "or", "but", "then", "und", "oder", "et", "ou", "y", "o", "respectively"})
PREFIXES: Final = ("un", "in", "im", "dis", "non", "de")
NOT_INFLECTED: Final = _words(
    "news goods customs means evening morning during something everything anything windows always less series"
)
