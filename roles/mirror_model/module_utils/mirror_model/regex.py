r"""Topic patterns in the subset of regular expressions that Java and Python read alike.

A pattern always matches a whole topic name. An entry made only of the characters a topic name may
hold means exactly that topic, so the dots of ``payments.eu`` are dots; any other entry is a regular
expression made of literals, ``.``, classes, ``\d \w``, ``(...)``, ``(?:...)``, ``|``,
``* + ?`` and ``{n}``.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .keys import ModelError

ALPHABET = frozenset(string.ascii_letters + string.digits + "._-")
WORD = frozenset(string.ascii_letters + string.digits + "_")
DIGITS = frozenset(string.digits)
TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
LONGEST_NAME = 249
# Of a pattern with more names or beginnings than this only what they have in common counts.
MOST_BEGINNINGS = 8

_ESCAPES = {"d": DIGITS, "w": WORD, ".": frozenset("."), "-": frozenset("-"), "_": frozenset("_")}
_NO_ATOMS = {
    ",": "MirrorMaker 1 turns a comma into '|'; write one list entry per topic",
    **{char: f"'{char}' repeats nothing; write '.*' for any name" for char in "*+?{"},
    **{char: f"'{char}' is not needed: patterns always match the whole topic name"
       for char in "^$"},
}  # fmt: skip
_NO_SECOND_QUANTIFIERS = {
    "?": "lazy quantifiers are not portable; whole names match either way",
    "+": "possessive quantifiers are not portable; drop the second '+'",
    **dict.fromkeys(
        "*{", "a quantifier follows a quantifier; put the inner part in '(?:...)'"
    ),
}  # fmt: skip
_RANGES = (string.digits, string.ascii_uppercase, string.ascii_lowercase)
_GROUPS = {
    "?=": "lookahead", "?!": "negative lookahead", "?<=": "lookbehind", "?<!": "lookbehind",
    "?P": "named group or reference", "?<": "named group", "?>": "atomic group",
    "?(": "conditional group", "?#": "comment",
}  # fmt: skip


def is_literal(pattern: str) -> bool:
    """Whether an entry names one topic instead of describing many."""
    return TOPIC_NAME.fullmatch(pattern) is not None


def as_regex(pattern: str) -> str:
    """The regular expression of one entry.

    :param pattern: an entry of ``topics`` or ``topics_exclude``.
    :returns: the entry itself, or for a literal name the expression that matches that name only.
    """
    return pattern.replace(".", r"\.") if is_literal(pattern) else pattern


def exactly(name: str) -> str:
    """The regular expression of one name, whatever letters it has."""
    return as_regex(name) if is_literal(name) else re.escape(name)


def include_regex(topics: Sequence[str], exclude: Sequence[str] = ()) -> str:
    """One expression for the whole topic selection, as MirrorMaker 1 takes it.

    :param topics: entries of ``topics``, already checked.
    :param exclude: entries of ``topics_exclude``; they become a negative lookahead.
    :returns: an expression to be matched against whole names, free of commas, blanks and quotes.
    """
    chosen = "|".join(as_regex(topic) for topic in topics)
    if not exclude:
        return chosen
    return f"(?!(?:{'|'.join(as_regex(topic) for topic in exclude)})$)(?:{chosen})"


@functools.lru_cache(maxsize=4096)
def parsed(pattern: str) -> Node:
    """One entry as an expression.

    :raises ModelError: Java, Python or MirrorMaker 1 would read it differently; the message says
        where it leaves the portable subset, and why.
    """
    return _Parser(as_regex(pattern)).parse()


def beginnings(pattern: str) -> list[tuple[str, bool]]:
    """What the names a pattern describes begin with.

    :param pattern: an entry of ``topics``, already checked.
    :returns: pairs of a text and whether it is the whole name, sorted; none is within another.
        ``("", False)`` stands for any name.
    """
    texts = parsed(pattern).beginnings()
    open_ended = [text for text, whole in texts if not whole]
    return sorted(
        (text, whole)
        for text, whole in texts
        if (text or not whole)
        and not any(
            text.startswith(beginning) for beginning in open_ended if whole or beginning != text
        )
    )


def after(pattern: str, beginning: str) -> list[str]:
    """What may follow a beginning in the names that a pattern describes.

    :param pattern: an entry of ``topics``, already checked.
    :returns: patterns, sorted; none if no name begins so and goes on.
    """
    rests = {parsed(pattern)}
    for letter in beginning:
        rests = {rest for node in rests for chars, rest in node.edges if letter in chars}
    return sorted(node.text for node in rests if node.text)


def longer_than(length: int) -> str:
    """The pattern of the names that have more letters."""
    return f".{{{length + 1}}}.*"


@dataclass(frozen=True)
class Node:
    """A parsed expression: a set of letters, a sequence, a choice or an open repetition."""

    kind: str
    chars: frozenset[str] = frozenset()
    parts: tuple[Node, ...] = ()

    def beginnings(self) -> set[tuple[str, bool]]:
        """Texts, and whether each is all of a match."""
        if self.kind == "chars":
            texts = {(char, True) for char in self.chars}
        elif self.kind == "sequence":
            return self._joined(self.parts)
        else:
            texts = {beginning for part in self.parts for beginning in part.beginnings()}
            if self.kind in "*+":
                texts = {(text, False) for text, _ in texts}
            if self.kind in "*?":
                texts.add(("", self.kind == "?"))
        return texts if len(texts) <= MOST_BEGINNINGS else {("", False)}

    @staticmethod
    def _joined(parts: Iterable[Node]) -> set[tuple[str, bool]]:
        joined = {("", True)}
        for part in parts:
            after = part.beginnings()
            longer = {(text + more, end) for text, whole in joined if whole for more, end in after}
            longer |= {(text, whole) for text, whole in joined if not whole}
            if len(longer) > MOST_BEGINNINGS:
                return {(text, False) for text, _ in joined}
            joined = longer
        return joined

    @functools.cached_property
    def optional(self) -> bool:
        """Whether a match may be empty."""
        if self.kind == "sequence":
            return all(part.optional for part in self.parts)
        return self.kind in "*?" or any(part.optional for part in self.parts)

    @functools.cached_property
    def edges(self) -> list[tuple[frozenset[str], Node]]:
        """Letters a match may begin with, and what it may go on with behind them.

        Linear forms, Antimirov 1996.
        """
        if self.kind == "chars":
            return [(self.chars, _sequence())]
        edges: list[tuple[frozenset[str], Node]] = []
        if self.kind == "sequence":
            for place, part in enumerate(self.parts, 1):
                edges += [(c, _sequence(rest, *self.parts[place:])) for c, rest in part.edges]
                if not part.optional:
                    break
            return edges
        again = [Node("*", parts=self.parts)] if self.kind in "*+" else []
        return [(c, _sequence(rest, *again)) for part in self.parts for c, rest in part.edges]

    def sets(self) -> set[frozenset[str]]:
        """The sets of letters in it."""
        return {self.chars}.union(*(part.sets() for part in self.parts))

    def backwards(self) -> Node:
        """What matches the same texts, read from their ends."""
        parts = tuple(part.backwards() for part in self.parts)
        return Node(self.kind, self.chars, parts[::-1] if self.kind == "sequence" else parts)

    @property
    def text(self) -> str:
        """The expression in words of the portable subset."""
        if self.kind == "chars":
            return _class(self.chars)
        if self.kind == "choice":
            return "|".join(part.text for part in self.parts)
        if self.kind == "sequence":
            return "".join(
                f"(?:{part.text})" if part.kind == "choice" else part.text for part in self.parts
            )
        [part] = self.parts
        return (part.text if part.kind == "chars" else f"(?:{part.text})") + self.kind


def _sequence(*parts: Node) -> Node:
    """Parts one after another; none of them is a sequence itself."""
    flat = [
        inner for part in parts for inner in (part.parts if part.kind == "sequence" else [part])
    ]
    return flat[0] if len(flat) == 1 else Node("sequence", parts=tuple(flat))


def _class(chars: frozenset[str]) -> str:
    """A set of letters as an expression; '-' stands last, where it means itself."""
    if chars == ALPHABET:
        return "."
    if len(chars) == 1:
        return "".join(chars).replace(".", "\\.")
    whole = [letters for letters in _RANGES if chars >= set(letters)]
    single = sorted(chars - set("".join(whole)), key=lambda char: (char == "-", char))
    return f"[{''.join(f'{letters[0]}-{letters[-1]}' for letters in whole)}{''.join(single)}]"


class _Parser:
    """A reader of the portable subset."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0

    def parse(self) -> Node:
        node = self.choice()
        if self.at < len(self.pattern):
            raise self.error("')' closes nothing; write '\\.' style escapes for literal characters")
        return node

    def error(self, why: str) -> ModelError:
        return ModelError(f"topic pattern '{self.pattern}', character {self.at + 1}: {why}")

    def peek(self) -> str:
        return self.pattern[self.at] if self.at < len(self.pattern) else ""

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Node("choice", parts=tuple(parts))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated())
        if not parts:
            raise self.error("an alternative is empty; make the group optional with '?' instead")
        return parts[0] if len(parts) == 1 else Node("sequence", parts=tuple(parts))

    def repeated(self) -> Node:
        node = self.atom()
        char = self.peek()
        if char and char in "*+?":
            self.at += 1
            node = Node(char, parts=(node,))
        elif char == "{":
            count = re.compile(r"\{([0-9]{1,3})\}").match(self.pattern, self.at)
            if count is None or int(count[1]) > LONGEST_NAME:
                raise self.error(
                    "only '{n}' with a number up to 249 is portable: MirrorMaker 1 turns the comma "
                    "of '{n,m}' into '|'; write the repetition out with '?', '*' or '+'"
                )
            self.at = count.end()
            node = Node("sequence", parts=(node,) * int(count[1]))
        else:
            return node
        after = self.peek()
        if after in _NO_SECOND_QUANTIFIERS:
            raise self.error(_NO_SECOND_QUANTIFIERS[after])
        return node

    def atom(self) -> Node:
        char = self.peek()
        if char == "(":
            return self.group()
        if char == "[":
            return self.bracket()
        if char == "\\":
            return Node("chars", self.escape())
        if char in _NO_ATOMS:
            raise self.error(_NO_ATOMS[char])
        if char not in ALPHABET:
            raise self.error(
                "a topic name holds only letters, digits, '.', '_' and '-'; remove this character"
            )
        self.at += 1
        return Node("chars", ALPHABET if char == "." else frozenset(char))

    def group(self) -> Node:
        self.at += 1
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self.peek() == "?":
            rest = self.pattern[self.at :]
            kind = next((n for p, n in _GROUPS.items() if rest.startswith(p)), "inline flags")
            raise self.error(f"{kind}: not portable; use '(...)', and topics_exclude to leave out")
        node = self.choice()
        if self.peek() != ")":
            raise self.error("a '(' is not closed")
        self.at += 1
        return node

    def escape(self) -> frozenset[str]:
        char = self.pattern[self.at + 1 : self.at + 2]
        if char not in _ESCAPES or not char:
            what = "back-references are" if char.isdigit() and char else f"'\\{char}' is"
            raise self.error(f"{what} not portable; the escapes are \\d \\w \\. \\- \\_")
        self.at += 2
        return _ESCAPES[char]

    def bracket(self) -> Node:
        self.at += 1
        negated = self.peek() == "^"
        self.at += negated
        chars = self.member(first=True)
        while self.peek() != "]":
            chars |= self.member(first=False)
        self.at += 1
        return Node("chars", ALPHABET - chars if negated else chars)

    def member(self, *, first: bool) -> frozenset[str]:
        low = self.peek()
        if low == "":
            raise self.error("a '[' is not closed")
        if low == "\\":
            return self.escape()
        if low not in ALPHABET:
            raise self.error("a class holds letters, digits, '.', '_', '-' and \\d \\w, no more")
        following = self.pattern[self.at + 1 : self.at + 3]
        if low == "-" and not first and not following.startswith("]"):
            raise self.error("write '-' first, last or as '\\-' in a class")
        if not (following.startswith("-") and len(following) == 2 and following[1] != "]"):
            self.at += 1
            return frozenset(low)
        high = following[1]
        if not any(low in g and high in g and low <= high for g in _RANGES):
            raise self.error("a range runs upwards within digits, capitals or small letters")
        self.at += 3
        return frozenset(chr(code) for code in range(ord(low), ord(high) + 1))
