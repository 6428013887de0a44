"""Cumulative figures come in as they are sampled; the curves of the run go out, bounded. Pure.

Cumulative figures may be thinned at will: those that are kept stay exact, and so does every slope between two
of them. The spacing of what is kept is even over the whole run: when the room is full, it is doubled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

from .records import Course

POINTS = 240
"""A curve has at most this many points: one for each pair of pixels of a panel."""

APART_S = 0.25
"""Points are at least this far apart: between two updates of a counter a slope would say 0, then twice too
much."""

_Item = TypeVar("_Item")


class Thinned(Generic[_Item]):
    """Items along an axis, at most `limit` of them and evenly spaced; the newest is always there.

    Parameters
    ----------
    limit
        How many are kept at most, 2 or more.
    place
        Where an item stands on the axis. Items come in ascending order.
    spacing
        How far apart they are kept at least.
    """

    def __init__(self, limit: int, place: Callable[[_Item], float], spacing: float = 0.0) -> None:
        self._limit = limit
        self._place = place
        self._items: list[_Item] = []
        self._spacing = spacing

    def add(self, item: _Item) -> None:
        """Take the newest item. It takes the last one's place if that is too close to the one before."""
        items, place = self._items, self._place
        if self._is_last_close():
            items[-1] = item
            return
        items.append(item)
        if len(items) > self._limit:
            span = place(items[-1]) - place(items[0])
            self._spacing = max(2 * self._spacing, 2 * span / self._limit)
            kept = items[:1]
            for each in items[1:-1]:
                if place(each) - place(kept[-1]) >= self._spacing:
                    kept.append(each)
            self._items = [*kept, items[-1]]

    def wants(self, at: float) -> bool:
        """Whether an item at a place would be kept once a later one is there."""
        stays = -2 if self._is_last_close() else -1
        return len(self._items) < 2 or at - self._place(self._items[stays]) >= self._spacing

    def _is_last_close(self) -> bool:
        items, place = self._items, self._place
        return len(items) > 1 and place(items[-1]) - place(items[-2]) < self._spacing

    def replace(self, items: Iterable[_Item]) -> None:
        """Put items in the place of those that are kept, each where the other stood."""
        self._items = list(items)

    def items(self) -> tuple[_Item, ...]:
        """What is kept, in order."""
        return tuple(self._items)


Point = tuple[float, "float | None", "tuple[float | None, ...]"]
"""Seconds of the run, grams so far, joules so far of each device."""


class CourseOf:
    """The curves of a run under way.

    Parameters
    ----------
    devices
        Keys of the devices, in order.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        self._points: Thinned[Point] = Thinned(POINTS, lambda point: point[0], APART_S)

    def add(self, at_s: float, emissions_g: float | None, energy_j: Mapping[str, float]) -> None:
        """Take the figures at an instant.

        Parameters
        ----------
        at_s
            Seconds of the run, pauses left out.
        emissions_g
            Grams so far; None if nothing was measured.
        energy_j
            Joules so far by device; one that cannot be read just now is absent.
        """
        points = self._points.items()
        if not points or at_s > points[-1][0]:
            self._points.add((at_s, emissions_g, tuple(energy_j.get(device) for device in self._devices)))

    def end(self, at_s: float, emissions_g: float | None, energy_j: Mapping[str, float]) -> None:
        """Take the figures at the end of the run. What a sample brought beyond it is taken back."""
        self._points.replace(point for point in self._points.items() if point[0] < at_s)
        self.add(at_s, emissions_g, energy_j)

    def rescale_emissions(self, factor: float) -> None:
        """The grams so far were charged at another intensity than turned out to have held."""
        self._points.replace(
            (at_s, None if emissions_g is None else emissions_g * factor, energies)
            for at_s, emissions_g, energies in self._points.items()
        )

    def points(self) -> tuple[Point, ...]:
        """What is kept, in order."""
        return self._points.items()

    def newest(self) -> Point | None:
        """The newest point; None if there is none."""
        points = self._points.items()
        return points[-1] if points else None

    def course(self, epoch_ends_s: Sequence[float]) -> Course:
        """The curves so far, with where epochs ended."""
        points = self.points()
        return Course(
            at_s=tuple(at_s for at_s, _, _ in points),
            emissions_g=tuple(grams for _, grams, _ in points),
            energy_j=MappingProxyType(
                {
                    device: tuple(energies[column] for _, _, energies in points)
                    for column, device in enumerate(self._devices)
                }
            ),
            epoch_ends_s=every_nth(epoch_ends_s, POINTS),
        )


def every_nth(values: Sequence[float], limit: int) -> tuple[float, ...]:
    """At most `limit` of some values, evenly chosen."""
    return tuple(values[:: max(1, -(-len(values) // limit))])
