"""Tests, intervals, change points: what gate, history and outliers decide with. Nothing here knows records or files."""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
