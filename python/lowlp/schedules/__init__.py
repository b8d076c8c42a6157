"""Which schedule a product takes: tables that were measured."""
