"""Runs go in and become logs in carbontracker's format; logs of any carbontracker come back as runs."""
