"""One language model per role, and everything a paid call passes through: store, limits, ledger, provider."""
