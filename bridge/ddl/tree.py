"""A query or an expression as sqlglot's tree, whose nodes know their place in the source."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sqlglot import exp

from bridge.ddl.dialect import Respelled
from bridge.ddl.part import Part
from bridge.ddl.tokens import Source, Token
from bridge.errors import DdlError, UnsupportedError
from bridge.expressions.failures import is_of_rows, note_of_rows
from bridge.expressions.refusal import Refusal
from bridge.expressions.typed import adapt


class Tree:
    """The tree of `part`, which was parsed as `respelled`."""

    def __init__(self, root: exp.Expr, part: Part, respelled: Respelled) -> None:
        self.root, self.part, self._respelled = root, part, respelled

    @property
    def source(self) -> Source:
        return self.part.source

    def start(self, node: exp.Expr) -> int:
        """Returns the offset in the source at which `node` starts."""
        starts = [int(n.meta["start"]) for n in node.walk() if "start" in n.meta]
        if not starts:
            return self.start(node.parent) if node.parent is not None else self.part.tokens[0].start
        return self._respelled.origin(min(starts))

    def called(self, node: exp.Expr) -> Token | None:
        """Returns the word before the parenthesis in which `node` has its arguments."""
        at = self.start(node)
        tokens = self.part.tokens
        calls = [t for t, after in pairwise(tokens) if after.keyword == "(" and t.kind == "word"]
        before = [t for t in calls if t.start <= at]
        return before[-1] if before else None

    def error(self, message: str, node: exp.Expr) -> DdlError:
        """Returns a DdlError at the start of `node`."""
        return self.part.error(message, self.start(node))

    def unsupported(self, what: str, way_out: str, node: exp.Expr) -> DdlError | UnsupportedError:
        """Returns an error that `what`, a part of the query or expression, is not supported, at the start of `node`."""
        return self.part.unsupported(what, way_out, self.start(node))

    def adapted(self, node: exp.Expr) -> exp.Expr:
        """Returns `typed.adapt(node)`. Raises DdlError for what it refuses."""
        try:
            return adapt(node)
        except Refusal as refusal:
            raise self.error(str(refusal), refusal.node or node) from None


def translated(root: exp.Expr, adapted: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Returns `root` with all nodes `adapted`; it is replaced in its parent, too.

    Children come before parents: the translation of a parent depends on the types of its adapted operands.
    """
    for node in reversed(list(root.walk(bfs=False))):
        made = adapted(node)
        if is_of_rows(node):
            note_of_rows(made)
        if made is not node:
            made.meta.setdefault(
                "start", next((n.meta["start"] for n in node.walk() if "start" in n.meta), 0)
            )
            if node is root:
                root = made
            if node.parent is not None:
                node.replace(made)
    return root
