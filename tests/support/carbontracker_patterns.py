"""What the parsers and the report of carbontracker 1.2.5 to 2.4.7 look for, rebuilt from what they accept.

`tests/peers` asks the real packages; these let every other test ask without them.
"""

from __future__ import annotations

import re

_BLOCK = r"[\s\S]*?Time:\s*(.*)\n\s*Energy:\s*(.*)\s+kWh[\s\S]*?CO2eq:\s*(.*)\s+g"
STANDARD = {
    "components": re.compile(r"The following components were found:(.*)"),
    "duration": re.compile(r"Duration: (\d+):(\d{2}):(\d\d?(?:.\d{2})?)"),
    "power 2.x": re.compile(r"Average power usage \(W\) for (.+): (\[?[0-9\.]+\]?|None)"),
    "power 1.x": re.compile(r"Average power usage \(W\) for (.+): (\[.+\]|None)"),
    "early stop": re.compile(r"(?i)Training was interrupted"),
    "report version": re.compile(r"carbontracker version ([\d\.]+)"),
    "report pue": re.compile(r"PUE coefficient of ([\d\.]+)"),
    "report epoch": re.compile(r"Epoch (\d+):"),
    "report average": re.compile(r"Average carbon intensity during training was"),
    "report intensities": re.compile(r"Carbon intensities \(gCO2eq/kWh\)"),
    "report time after the line's own": re.compile(r".\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}"),
}
OUTPUT = {
    "predicted": re.compile(r"(?i)Predicted consumption for (\d*) epoch\(s\):" + _BLOCK),
    "actual": re.compile(r"(?i)Actual consumption" + _BLOCK),
    "any": re.compile(r"(?i)(?:actual|predicted) consumption"),
}
DEVICES = re.compile(r" (.*?) with device\(s\) (.*?)\.")


def devices(line: str) -> dict[str, list[str]]:
    """Names by component as carbontracker takes them from a components line."""
    return {component.lower(): names.split(",") for component, names in DEVICES.findall(line)}
