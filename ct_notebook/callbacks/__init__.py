"""Callbacks for trainings whose epoch loop is out of sight: one file per framework.

``from ct_notebook.callbacks.keras import CarbonTrackerCallback``, and the same from `lightning` and
`transformers`. No framework is imported before its file is.
"""
