"""The record metric: evaluators over all fields of a record, items of lists matched one to one."""

from metrics.record.metric import RecordMetric

__all__ = ["RecordMetric"]
