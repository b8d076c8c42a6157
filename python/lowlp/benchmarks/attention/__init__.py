"""`lowlp bench --attention`: decode attention over every kind of cache, and appending to it."""
