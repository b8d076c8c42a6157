"""Times of products of experts, as `lowlp bench --experts` takes them."""
