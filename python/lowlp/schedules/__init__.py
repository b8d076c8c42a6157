"""Measured schedules, and the devices that they were measured on."""
