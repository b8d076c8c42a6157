"""Number formats on the host: types, scale types, tables, the codec, arrays. Needs no MLIR."""
