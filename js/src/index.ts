// The anywidget module: a model comes in, a view of its run goes into the element.

import { Live, type Model } from "./live";
import { View } from "./view";

/** Views of one model share what it has heard. The proxies differ, so the run's name tells the model. */
const lives = new Map<string, Live>();

function liveOf(model: Model): Live {
  const snapshot = model.get("snapshot") as { facts?: { run?: unknown } } | null;
  const run = String(snapshot?.facts?.run ?? "");
  let live = lives.get(run);
  if (!live) {
    live = new Live(model);
    lives.set(run, live);
  }
  return live;
}

export default {
  initialize({ model }: { model: Model }): () => void {
    const live = liveOf(model);
    return () => {
      live.close();
      for (const [run, each] of lives) if (each === live) lives.delete(run);
    };
  },

  render({ model, el }: { model: Model; el: HTMLElement }): () => void {
    const live = liveOf(model);
    const view = new View(live, el);
    live.hello();
    return () => view.close();
  },
};
