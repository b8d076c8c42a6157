"""From floats to codes and scales."""
