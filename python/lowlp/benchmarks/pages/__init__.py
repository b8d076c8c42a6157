"""docs/performance.md and the pages under docs/measurements: what was measured, as the bench itself writes it."""
