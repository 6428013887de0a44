"""Ask in Google Colab by its own blocking call, for the case that its page shows no panel."""

from __future__ import annotations

import json
import sys
from typing import Any

from .question import Answer, Question

MODULE = "google.colab.output"

GRACE_S = 5.0
"""How much later than the page itself the kernel gives up waiting, so that a click in time is not lost."""


def is_there() -> bool:
    """Whether this kernel is one of Colab's: its package is loaded there before the first cell runs."""
    return MODULE in sys.modules


def ask(question: Question) -> Answer:
    """Show two buttons in the output of the cell and wait for one.

    `eval_js` runs a script in the page and waits for its promise. The reply comes on the socket of `input()`,
    which a running cell does not block.
    """
    output: Any = sys.modules[MODULE]
    script = _script(question)
    # A page that is gone resolves nothing; one that is there answers by itself when the time is up.
    patience = {"timeout_sec": question.timeout_s + GRACE_S} if question.timeout_s else {}
    try:
        try:
            go_on = output.eval_js(script, **patience)
        except TypeError:  # older releases know no time-out
            go_on = output.eval_js(script)
    except Exception:  # the page has refused the script
        return question.nobody_there()
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
    (document.querySelector("#output-area") ?? document.body).append(box);
  }});
  box.remove();
  return answer;
}})()
"""
