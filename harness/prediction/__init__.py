"""A bundle over many documents: what is read, what is asked, what is written."""

from harness.prediction.batch import PredictionCounts, open_model, predict, predict_bundle

__all__ = ["PredictionCounts", "open_model", "predict", "predict_bundle"]
