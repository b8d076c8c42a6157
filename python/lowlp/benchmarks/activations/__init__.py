"""`lowlp bench --activations`: products with quantised activations by every path, beside other libraries."""
