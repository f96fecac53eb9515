"""Every metric of plotted series through the figure suite; a new one is one line."""

from metrics import CompositeMetric
from metrics.figure import FigureMetric
from metrics.testing import FigureMetricConformance, conformance

TestFigureMetric = conformance(FigureMetricConformance, FigureMetric)
TestInAComposite = conformance(FigureMetricConformance, lambda: CompositeMetric({"figure": FigureMetric()}))
