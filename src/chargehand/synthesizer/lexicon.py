"""Words -> what they are good for in a comparison: left out, a negation, the same as another word, or its opposite.

Small words that decide what is said (all, some, only, may, must, on, off) carry no content either, but mark it: what
differs in a mark is not the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

# Words that carry no content of their own: who is compared by them would find everything alike.
_STOP_WORDS: Final = """
a an the this that these those it its their his her our your they them there here he she we you i who whom which what
where when is are was were be been being am has have had having do does did done will would shall should may might can
could must of in on at by for to from with into onto as and or but so than then also just very too such about around
approximately roughly circa currently now today overall total totally really quite rather however therefore thus
according reportedly reported reports report shows show found finds states stated says said per each any some both
either all own up down out off made make makes gets got given ever yet still only solely exclusively already expected
set amounts amount stood stands corp inc ltd gmbh plc llc
"""
_NEGATION_WORDS: Final = """
not no never none nor neither without cannot nothing nobody nowhere lack lacks lacking lacked missing absent absence
hardly against
ne pas jamais aucun aucune sans rien ni non
nicht kein keine keinen keiner keinem keines nie niemals niemand nichts ohne
nunca jamás ningún ninguno ninguna nada sin não nao nenhum nenhuma sem nessun nessuno nessuna senza
niet geen nooit zonder ikke ikkje inte ej aldrig aldri ingen intet inget inga uden uten utan
не нет ни без никогда değil
"""
# One line is one mark; the first word stands for it.
_MARK_WORDS: Final = """
all every
some
only solely exclusively
can may might could possible possibly perhaps potentially
must shall
should
on
off
up
down
"""
# One line is one meaning; the first word stands for it.
_SAME: Final = """
rise rose risen grow grew grown growth increase climb raise raised surge gain
fall fell fallen drop decrease decline shrink shrank sink sank reduce
terminate end cancel
cap limit restrict
allow permit authorise authorize
forbid prohibit ban disallow
buy purchase bought
sell sold
start begin began begun commence
stop halt cease
function method
delete remove
use utilise utilize usage
need require
exceed over above longer more greater
under below less fewer beneath
give provide supply
get receive obtain
cost price charge fee
customer client
employee staff worker personnel
doctor physician
year annual annually yearly
day daily
month monthly
week weekly
hour hourly
contain include comprise
better improve improved
worse worsen deteriorate
reply answer respond response return
inhabitant population resident
error exception fault
outdated obsolete stale
log logged logging
text string
fast quick rapid quickly
slow slowly
big large
small little
help assist support
deliver ship
owner holder
write written wrote
read reading
lead leads led
take takes took taken
keep kept
leave left depart departs
pay paid
hold held
build built
run ran running execute executed
teach taught
send sent
"""

# One line is one question with its two answers; words on one side agree.
_OPPOSED: Final = """
rise | fall
high higher | low lower
safe harmless secure | unsafe dangerous harmful insecure contraindicated
recommend recommended advise advised advisable | discouraged inadvisable contraindicated
approve approved accept accepted | reject rejected decline declined refuse refused
pass passed succeed succeeded success successful work works | fail failed failure failing broken unsuccessful
valid | invalid void
allow | forbid
enable enabled | disable disabled
active | inactive
open opened | close closed
legal lawful | illegal unlawful
true | false
yes | no
required mandatory compulsory | optional voluntary
exceed | under
before | after
easy simple | difficult hard
cheap cheaper cheapest inexpensive | expensive costly dearer
positive | negative
win won | lose lost
early earlier | late later
fast faster fastest | slow slower slowest
better best | worse worst
start continue | stop discontinue
public | private
likely probable | unlikely improbable
complete completed | incomplete unfinished
correct right accurate | incorrect wrong inaccurate
available | unavailable
buy | sell
overvalued | undervalued
include | exclude
present | gone
maximum most highest | minimum least lowest
double doubled | halve halved
profit | loss
strong stronger | weak weaker
guilty | innocent
vulnerable | immune
sufficient enough adequate | insufficient inadequate
full | empty
inbound incoming | outbound outgoing
agree | disagree
always | sometimes seldom rarely occasionally
"""


_STOP: Final = frozenset(_STOP_WORDS.split())
_NEGATIONS: Final = frozenset(_NEGATION_WORDS.split())
_MARKS: Final = {word: line.split()[0] for line in _MARK_WORDS.strip().splitlines() for word in line.split()}


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word without its endings: closes, closed, closing and close are one, and so is what means the same."""
    return _MEANING.get(word) or _MEANING.get(_bare(word)) or _bare(word)


def is_stop(word: str) -> bool:
    return word in _STOP


def is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith("n't") or word.endswith("n’t")


def mark(word: str) -> str | None:
    """What a small word says of the content: how much of it, how surely, which way; None for other words."""
    return _MARKS.get(word)


def affirmed_word(word: str) -> str | None:
    """`bounded` of `unbounded`: the word that an un- denies, or None."""
    return word[2:] if _DENIED.fullmatch(word) else None


def question(stemmed: str) -> tuple[str, bool] | None:
    """What a word is an answer to and whether it affirms it, None for a word that has no opposite."""
    return _ANSWERS.get(stemmed)


_DENIED: Final = re.compile(r"un(?!der|it|iq|iv|til|less)[a-z]{3,}(?:ed|able|ible|ing)")
_DOUBLED: Final = re.compile(r"([b-df-hj-km-np-rtv-z])\1$")


def _bare(word: str) -> str:
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ation", "ion", "ment", "ing", "ed", "ly", "er"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending in ("ing", "ed")):
            word = word[: -len(ending)] + ("at" if ending == "ation" else "")
            word = _DOUBLED.sub(r"\1", word)
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _meanings() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _SAME.strip().splitlines():
        words = line.split()
        for word in words:
            found[word] = found[_bare(word)] = _bare(words[0])
    return found


_MEANING: Final = _meanings()


def _answers() -> dict[str, tuple[str, bool]]:
    found: dict[str, tuple[str, bool]] = {}
    for line in _OPPOSED.strip().splitlines():
        yes, no = (side.split() for side in line.split("|"))
        for words, affirms in ((yes, True), (no, False)):
            for word in words:
                found.setdefault(stem(word), (yes[0], affirms))
    return found


_ANSWERS: Final = _answers()
