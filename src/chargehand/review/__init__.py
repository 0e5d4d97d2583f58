"""Code review: a change becomes a plan of lenses and files, the run's findings become what is worth showing."""

from __future__ import annotations

from chargehand.review.change import Change, read_tree
from chargehand.review.difference import read_diff, read_staged
from chargehand.review.patched import read_patch
from chargehand.review.playbook import playbook
from chargehand.review.selection import Selection, select
from chargehand.review.source import Source
from chargehand.review.view import nothing, view

__all__ = [
    "Change",
    "Selection",
    "Source",
    "nothing",
    "playbook",
    "read_diff",
    "read_patch",
    "read_staged",
    "read_tree",
    "select",
    "view",
]
