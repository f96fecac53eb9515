"""Everything a person looks at after a run: MLflow runs, plots and the report. The only place that imports mlflow.

`store` says where runs are kept, `tracker` opens it, `run` is one run being written, `run_tree` writes a whole
result, `ui` serves MLflow's pages; `plots` and `report` need no MLflow at all. Nothing is imported here, so that
reading a report does not cost MLflow's start.
"""
