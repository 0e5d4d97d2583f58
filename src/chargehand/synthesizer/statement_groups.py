"""Statements -> groups small enough for one question to a judge; likely contradictions are in the same group.

Up to `MOST_IN_GROUP` statements are one group. More are grouped by the terms they share, rare terms first: each
statement is linked to the few nearest of other tasks, the strongest links are joined until a group is full, and links
between statements that did not meet get a second and a third chance. The cost grows with the number of statements, not
with the number of pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import nlargest
from math import log
from typing import Final, TypeAlias

from chargehand.synthesizer.word_stems import terms

MOST_IN_GROUP: Final = 40
# In how many groups one statement may be.
MOST_GROUPS: Final = 3
# How many of the earlier statements with a term are compared, the latest first.
MOST_PER_TERM: Final = 24
NEAREST: Final = 5
# Up to this many tasks two groups are enough; beyond, the number of groups grows with the number of statements.
FEW_TASKS: Final = 10
STATEMENTS_PER_GROUP: Final = 20

Group: TypeAlias = tuple[int, ...]
# The places of two statements, the earlier first.
Link: TypeAlias = tuple[int, int]


def most_groups(tasks: int, statements: int) -> int:
    """How many groups there may be at most: each is one call."""
    if statements <= MOST_IN_GROUP:
        return 1
    return 2 if tasks <= FEW_TASKS else max(2, statements // STATEMENTS_PER_GROUP)


def group_statements(texts: Sequence[str], tasks: Sequence[str], together: Iterable[Link] = ()) -> tuple[Group, ...]:
    """The groups as places in `texts`; `tasks` says which task made each statement, `together` which must meet.

    A group of one task alone is left out: tasks are compared with each other.
    """
    number = len(texts)
    if number <= MOST_IN_GROUP:
        groups = [list(range(number))]
    else:
        joined = list(dict.fromkeys([*together, *links(texts, tasks)]))
        groups = _Grouping(number, joined, most_groups(len(set(tasks)), number)).groups()
    return tuple(tuple(sorted(group)) for group in groups if len({tasks[place] for place in group}) > 1)


def links(texts: Sequence[str], tasks: Sequence[str]) -> list[Link]:
    """Each statement with the nearest ones of other tasks, the strongest links first."""
    of_text = [frozenset(terms(text)) for text in texts]
    number_with: dict[str, int] = {}
    for each in of_text:
        for term in each:
            number_with[term] = number_with.get(term, 0) + 1
    weights = {term: log(1 + len(texts) / number) for term, number in number_with.items()}
    lengths = [sum(weights[term] for term in each) or 1.0 for each in of_text]
    holders: dict[str, deque[int]] = {}
    found: dict[Link, float] = {}
    for place, each in enumerate(of_text):
        shared: dict[int, float] = {}
        for term in sorted(each):
            held = holders.setdefault(term, deque(maxlen=MOST_PER_TERM))
            for other in held:
                if tasks[other] != tasks[place]:
                    shared[other] = shared.get(other, 0.0) + weights[term]
            held.append(place)
        scored = [(weight / (lengths[place] * lengths[other]) ** 0.5, other) for other, weight in shared.items()]
        for weight, other in nlargest(NEAREST, scored):
            found[other, place] = weight
    return sorted(found, key=lambda link: (-found[link], link))


class _Grouping:
    """Fills groups one round after the other until every link is inside one, or no more groups may be made."""

    def __init__(self, number: int, links: Sequence[Link], most: int) -> None:
        self._number = number
        self._links = links
        self._most = most
        self._groups: list[list[int]] = []
        # The groups that each statement is in.
        self._of: list[set[int]] = [set() for _ in range(number)]

    def groups(self) -> list[list[int]]:
        self._add_round(self._links, range(self._number))
        for _ in range(1, MOST_GROUPS):
            self._fill()
            waiting = self._apart()
            if not waiting or len(self._groups) >= self._most:
                break
            self._add_round(waiting, dict.fromkeys(place for link in waiting for place in link))
        return self._groups

    def _add_round(self, links: Iterable[Link], places: Iterable[int]) -> None:
        """Groups of these statements, each in one of them; as many as there may still be."""
        for group in _pack(_join(links, places)):
            if len(self._groups) == self._most:
                return
            for place in group:
                self._of[place].add(len(self._groups))
            self._groups.append(group)

    def _fill(self) -> None:
        """Bring linked statements together where a group has room."""
        for one, other in self._apart():
            if self._of[one] & self._of[other]:
                continue
            for place, partner in ((one, other), (other, one)):
                room = [group for group in sorted(self._of[partner]) if len(self._groups[group]) < MOST_IN_GROUP]
                if room and len(self._of[place]) < MOST_GROUPS:
                    self._groups[room[0]].append(place)
                    self._of[place].add(room[0])
                    break

    def _apart(self) -> list[Link]:
        """The links between statements that are in no group together, and may be."""
        of = self._of
        return [
            (one, other)
            for one, other in self._links
            if not of[one] & of[other] and len(of[one]) < MOST_GROUPS and len(of[other]) < MOST_GROUPS
        ]


def _join(links: Iterable[Link], places: Iterable[int]) -> list[list[int]]:
    """The places in clusters of at most `MOST_IN_GROUP`, joined along the links in their order."""
    clusters = {place: [place] for place in places}
    for one, other in links:
        mine, theirs = clusters[one], clusters[other]
        if mine is theirs or len(mine) + len(theirs) > MOST_IN_GROUP:
            continue
        small, large = sorted((mine, theirs), key=len)
        large += small
        for place in small:
            clusters[place] = large
    distinct: dict[int, list[int]] = {id(cluster): cluster for cluster in clusters.values()}
    return list(distinct.values())


def _pack(clusters: Sequence[list[int]]) -> list[list[int]]:
    """Clusters put together into as few groups as first-fit finds, the largest first."""
    groups: list[list[int]] = []
    # The first group that may have room, by the size that did not fit before it.
    first: dict[int, int] = {}
    for cluster in sorted(clusters, key=len, reverse=True):
        at = first.get(len(cluster), 0)
        while at < len(groups) and len(groups[at]) + len(cluster) > MOST_IN_GROUP:
            at += 1
        first[len(cluster)] = at
        if at == len(groups):
            groups.append([])
        groups[at] += cluster
    return groups
