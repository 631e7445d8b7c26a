"""Whether selections of topics share a name: decided, not guessed.

The portable subset of patterns is regular. Selections run side by side as automata until a common
name is found or none can exist; those whose names differ in their first or last letters need not.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .regex import ALPHABET, LONGEST_NAME, Node, parsed

Pairs = set[frozenset[str]]
# Beyond this many states two selections count as overlapping: a refusal too many is mended by hand.
MOST_STATES = 20_000
# How many automata are kept between searches.
KEPT = 2048


def common_topic(selections: Iterable[tuple[Sequence[str], Sequence[str]]]) -> str | None:
    """A topic name that every selection chooses.

    :param selections: pairs of ``topics`` and ``topics_exclude``, already checked.
    :returns: the shortest such name, ``None`` if there is none. When the search grows too large
        the answer is ``"..."``: overlap is then assumed.
    """
    machines = [_machine(tuple(part)) for pair in selections for part in pair]
    letters = _letters(machines)
    start = tuple(machine.start for machine in machines)
    visited = {start}
    queue = deque([(start, "")])
    while queue:
        states, name = queue.popleft()
        accepted = [m.end in s for m, s in zip(machines, states, strict=True)]
        if name and all(accepted[0::2]) and not any(accepted[1::2]):
            return name
        if len(name) == LONGEST_NAME:
            continue
        for letter in letters:
            after = tuple(m.step(s, letter) for m, s in zip(machines, states, strict=True))
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


@dataclass
class _Machine:
    """A nondeterministic automaton; states are numbers, a run is a set of them."""

    edges: list[list[tuple[frozenset[str], int]]] = field(default_factory=list)
    empty: list[list[int]] = field(default_factory=list)
    start: frozenset[int] = frozenset()
    end: int = -1
    steps: dict[tuple[frozenset[int], str], frozenset[int]] = field(default_factory=dict)

    def state(self) -> int:
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        reached = set(states)
        todo = list(reached)
        while todo:
            for after in self.empty[todo.pop()]:
                if after not in reached:
                    reached.add(after)
                    todo.append(after)
        return frozenset(reached)

    def step(self, states: frozenset[int], letter: str) -> frozenset[int]:
        if (after := self.steps.get((states, letter))) is not None:
            return after
        if len(self.steps) >= MOST_STATES:
            self.steps.clear()
        after = self.closure(
            end for state in states for chars, end in self.edges[state] if letter in chars
        )
        self.steps[states, letter] = after
        return after

    def add(self, node: Node) -> tuple[int, int]:
        """First and last state of the part that matches an expression."""
        first, last = self.state(), self.state()
        if node.kind == "chars":
            self.edges[first].append((node.chars, last))
        elif node.kind == "sequence":
            at = first
            for part in node.parts:
                begin, end = self.add(part)
                self.empty[at].append(begin)
                at = end
            self.empty[at].append(last)
        else:
            for part in node.parts:
                begin, end = self.add(part)
                self.empty[first].append(begin)
                self.empty[end].append(last)
                if node.kind in "*+":
                    self.empty[end].append(begin)
            if node.kind in "*?":
                self.empty[first].append(last)
        return first, last


@functools.lru_cache(maxsize=KEPT)
def _machine(patterns: tuple[str, ...]) -> _Machine:
    machine = _Machine()
    first, last = machine.state(), machine.state()
    for pattern in patterns:
        begin, end = machine.add(parsed(pattern))
        machine.empty[first].append(begin)
        machine.empty[end].append(last)
    machine.start, machine.end = machine.closure([first]), last
    return machine


def _letters(machines: Sequence[_Machine]) -> list[str]:
    """One letter for every group of letters that no pattern tells apart."""
    sets = sorted({c for m in machines for edges in m.edges for c, _ in edges}, key=sorted)
    groups: dict[tuple[bool, ...], str] = {}
    for letter in sorted(ALPHABET, key=lambda c: (not c.islower(), c)):
        groups.setdefault(tuple(letter in chars for chars in sets), letter)
    return list(groups.values())
