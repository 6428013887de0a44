"""Ask in Google Colab by its own blocking call, for the case that its page shows no panel."""

from __future__ import annotations

import json
import sys
from typing import Any

from .question import Answer, Question

MODULE = "google.colab.output"


def is_there() -> bool:
    """Whether this kernel is one of Colab's: its package is loaded there before the first cell runs."""
    return MODULE in sys.modules


def ask(question: Question) -> Answer:
    """Show two buttons in the output of the cell and wait for one.

    `eval_js` runs a script in the page and waits for its promise. The reply comes on the socket of `input()`,
    which a running cell does not block.
    """
    output: Any = sys.modules[MODULE]
    try:
        go_on = output.eval_js(
            _script(question), timeout_sec=question.timeout_s + 5 if question.timeout_s else None
        )
    except Exception:  # a page that is gone, a script that was refused, its own time-out
        return question.too_late() if question.timeout_s else question.nobody_there()
    return Answer(go_on, "answered") if isinstance(go_on, bool) else question.too_late()


def _script(question: Question) -> str:
    """The two buttons, and null if neither was pressed in time. No text from outside is in it."""
    facts = json.dumps(
        {
            "prompt": "Continue training?",
            "note": question.prompt,
            "milliseconds": question.timeout_s * 1000,
        }
    )
    return f"""
(async () => {{
  const facts = {facts};
  const box = document.createElement("div");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", facts.prompt);
  box.style.cssText = "font: 14px system-ui, sans-serif; display: flex; gap: 8px; padding: 8px";
  const text = document.createElement("span");
  text.textContent = facts.prompt;
  box.append(text);
  const answer = await new Promise((done) => {{
    for (const [label, value] of [["Continue", true], ["Stop", false]]) {{
      const button = document.createElement("button");
      button.textContent = label;
      button.addEventListener("click", () => done(value));
      box.append(button);
    }}
    if (facts.milliseconds) setTimeout(() => done(null), facts.milliseconds);
    document.querySelector("#output-area")?.append(box) ?? document.body.append(box);
  }});
  box.remove();
  return answer;
}})()
"""
