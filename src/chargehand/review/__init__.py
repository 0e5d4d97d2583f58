"""Code review: a change becomes a plan of lenses and files, the run's findings become what is worth showing."""

from __future__ import annotations

from chargehand.review.change import Change, read_tree
from chargehand.review.difference import read_diff
from chargehand.review.hooked import read_hooked
from chargehand.review.languages import unanalysed
from chargehand.review.patched import read_patch
from chargehand.review.playbook import missed, playbook, subject
from chargehand.review.selection import Selection, select
from chargehand.review.source import Source
from chargehand.review.view import nothing, view

__all__ = [
    "Change",
    "Selection",
    "Source",
    "missed",
    "nothing",
    "playbook",
    "read_diff",
    "read_hooked",
    "read_patch",
    "read_tree",
    "select",
    "subject",
    "unanalysed",
    "view",
]
