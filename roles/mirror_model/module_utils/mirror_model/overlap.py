"""Whether selections of topics share a name: decided, not guessed.

The portable subset of patterns is regular. Selections are read side by side, letter by letter,
until they have a name in common or none can exist; those whose names differ in their first or last
letters need not.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from .regex import ALPHABET, LONGEST_NAME, Node, parsed

Pairs = set[frozenset[str]]
# How the names that a list of patterns describes may go on behind some letters.
State = frozenset[Node]
# Beyond this many states two selections count as overlapping: a refusal too many is mended by hand.
MOST_STATES = 20_000


def common_topic(selections: Iterable[tuple[Sequence[str], Sequence[str]]]) -> str | None:
    """A topic name that every selection chooses.

    :param selections: pairs of ``topics`` and ``topics_exclude``, already checked.
    :returns: the shortest such name, ``None`` if there is none. When the search grows too large
        the answer is ``"..."``: overlap is then assumed.
    """
    start = tuple(_start(tuple(part)) for pair in selections for part in pair)
    letters = _letters(start)
    # Not the start: the empty name is no topic's, and a name that leads back to it may be one.
    visited: set[tuple[State, ...]] = set()
    queue = deque([(start, "")])
    while queue:
        states, name = queue.popleft()
        accepted = [any(node.optional for node in state) for state in states]
        if name and all(accepted[0::2]) and not any(accepted[1::2]):
            return name
        if len(name) == LONGEST_NAME:
            continue
        for letter in letters:
            after = tuple(_after(state, letter) for state in states)
            if after in visited or not all(after[0::2]):
                continue
            if len(visited) >= MOST_STATES:
                return "..."
            visited.add(after)
            queue.append((after, name + letter))
    return None


def pairs_alike(topics: Mapping[str, Sequence[str]]) -> Pairs:
    """Which selections may share a name, by how their names begin and end.

    :param topics: name of a selection to its patterns, already checked.
    :returns: pairs of names of selections; those of a pair that is missing share no topic.
    """
    pairs = _pairs_by_beginning(topics, lambda node: node)
    return pairs & _pairs_by_beginning(topics, Node.backwards) if pairs else pairs


def _pairs_by_beginning(topics: Mapping[str, Sequence[str]], read: Callable[[Node], Node]) -> Pairs:
    beginnings = sorted(
        (*beginning, name)
        for name, patterns in topics.items()
        for beginning in {b for pattern in patterns for b in read(parsed(pattern)).beginnings()}
    )
    pairs: Pairs = set()
    above: list[tuple[str, bool, str]] = []
    for text, whole, name in beginnings:
        while above and not text.startswith(above[-1][0]):
            above.pop()
        pairs |= {
            frozenset((name, other))
            for beginning, complete, other in above
            if other != name and (not complete or beginning == text)
        }
        above.append((text, whole, name))
    return pairs


@functools.lru_cache(maxsize=MOST_STATES)
def _start(patterns: tuple[str, ...]) -> State:
    return frozenset(map(parsed, patterns))


@functools.lru_cache(maxsize=MOST_STATES)
def _after(state: State, letter: str) -> State:
    return frozenset(rest for node in state for chars, rest in node.edges if letter in chars)


def _letters(states: Iterable[State]) -> list[str]:
    """One letter for every group of letters that no pattern tells apart."""
    sets = {chars for state in states for node in state for chars in node.sets()}
    groups: dict[tuple[bool, ...], str] = {}
    for letter in sorted(ALPHABET, key=lambda c: (not c.islower(), c)):
        groups.setdefault(tuple(letter in chars for chars in sets), letter)
    return list(groups.values())
