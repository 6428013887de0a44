"""A run and what is known of grids come in; where and when it would have cost less goes out."""

from __future__ import annotations

from .when import When, when
from .where import Where, where

__all__ = ["When", "Where", "when", "where"]
