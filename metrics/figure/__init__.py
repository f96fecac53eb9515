"""The data of figures: series of points against the true ones."""

from metrics.figure.established import FigureExtractionMetric
from metrics.figure.metric import FigureMetric

__all__ = ["FigureExtractionMetric", "FigureMetric"]
