"""Named steps after the unbiased estimate: smoothing, projection, clipping, Bayesian update.

Each takes frequencies or counts and returns a new array; the unbiased estimate stays as it is.
"""

from __future__ import annotations

from loloha.server.bayesian import iterative_bayesian_update
from loloha.server.projection import clip_and_renormalise, project_simplex, smooth_ordered

__all__ = ["clip_and_renormalise", "iterative_bayesian_update", "project_simplex", "smooth_ordered"]
