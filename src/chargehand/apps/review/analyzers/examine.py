"""A rule and the files of an order -> its hits, without hits that a comment in the code silences."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from chargehand.apps.review.analyzers.hit import AnalysisOrder, Hit, Hits
from chargehand.apps.review.analyzers.source_files import SourceFile, SourceReader, is_python
from chargehand.apps.review.analyzers.suppression import drop_silenced


def examine_texts(order: AnalysisOrder, paths: Iterable[str], find: Callable[[SourceFile], Iterable[Hit]]) -> Hits:
    """The hits from `find` for each file that can be read."""
    reader = SourceReader(order.root)
    hits = [hit for source in reader.each(paths) for hit in drop_silenced(find(source), source.lines)]
    return Hits(tuple(hits), unchecked=reader.unchecked_files())


def examine_trees(order: AnalysisOrder, find: Callable[[SourceFile, ast.Module], Iterable[Hit]]) -> Hits:
    """The hits from `find` for each Python file that can be parsed."""
    reader = SourceReader(order.root)
    parsed = reader.parse_files(path for path in order.files if is_python(path, order.root))
    hits = [hit for source, tree in parsed for hit in drop_silenced(find(source, tree), source.lines)]
    return Hits(tuple(hits), unchecked=reader.unchecked_files())
