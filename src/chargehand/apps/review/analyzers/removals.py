"""A change and its base in git -> what it removes from functions that stay: checks, locks, arguments, tests.

The old files come from git; a child compares them with the present ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargehand.apps.review.analyzers import git
from chargehand.apps.review.analyzers.hit import Hits
from chargehand.apps.review.analyzers.run_analysis import ask_child
from chargehand.apps.review.analyzers.source_files import decode_source
from chargehand.engine.analyzer_port import Scope

if TYPE_CHECKING:
    from chargehand.apps.review.analyzers.lens import Lens

# A larger change is a move or a reformatting: removed code is inserted somewhere else.
MOST_FILES = 50


async def analyze(scope: Scope, lens: Lens) -> Hits:
    base = scope.base and await git.commit(scope.root, scope.base)
    paths = [path for path in scope.files if scope.changed is not None and path in scope.changed]
    if not base or len(paths) > MOST_FILES:
        return Hits()
    before = {path: decode_source(old) for path, old in (await git.read_files(scope.root, base, paths)).items()}
    if not before:
        return Hits()
    asked = Scope(scope.root, tuple(before), scope.changed, options={"before": before})
    return Hits.from_json(await ask_child("compare_versions", asked))
