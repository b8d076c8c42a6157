"""Number formats on the host: types, scale types, lookup tables, the codec, arrays. Needs no MLIR."""
