// A run comes in; the panel goes out. The DOM is built once, then its texts follow.

import { Chart, type Curve, type Picture } from "./chart";
import { stacked, total, type Value } from "./course";
import { h, icon, say, show } from "./dom";
import { countdown } from "./figures";
import type { Live } from "./live";
import type { Facts, State, Status } from "./schema";
import { Theme } from "./theme";

type Word = State | "gone";

const WORDS: Record<Word, string> = {
  starting: "Starting",
  measuring: "Measuring",
  paused: "Paused",
  waiting: "Waiting for you",
  stopped: "Stopped",
  finished: "Finished",
  interrupted: "Interrupted",
  failed: "Failed",
  gone: "Kernel gone",
};

const SHAPES: Record<Word, string> = {
  starting: "M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3Zm0 2a3 3 0 1 1 0 6 3 3 0 0 1 0-6Z",
  measuring: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Z",
  paused: "M4 3h3v10H4zM9 3h3v10H9z",
  waiting: "M8 1.5 15 14H1L8 1.5Zm-.8 4.6v4h1.6v-4H7.2Zm0 5v1.6h1.6v-1.6H7.2Z",
  stopped: "M3.5 3.5h9v9h-9z",
  finished: "M6.4 12.6 2 8.2l1.5-1.5 2.9 2.9 6.1-6.1L14 5z",
  interrupted: "M3.5 3.5h9v9h-9zm1.6 1.6v5.8h5.8V5.1z",
  failed: "m3.6 2.2 4.4 4.4 4.4-4.4 1.4 1.4L9.4 8l4.4 4.4-1.4 1.4L8 9.4l-4.4 4.4-1.4-1.4L6.6 8 2.2 3.6z",
  gone: "M2 7h12v2H2z",
};

const PAUSE = "M4 3h3v10H4zM9 3h3v10H9z";
const PLAY = "M4 2.5 13 8l-9 5.5z";
const STOP = "M3.5 3.5h9v9h-9z";

const FINAL = new Set<Word>(["stopped", "finished", "interrupted", "failed", "gone"]);

const COMPONENTS: Record<string, { label: string; token: string; dash: number[] }> = {
  gpu: { label: "GPU", token: "--ct-gpu", dash: [] },
  cpu: { label: "CPU", token: "--ct-cpu", dash: [7, 3] },
  ram: { label: "RAM", token: "--ct-ram", dash: [2, 3] },
};

const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

/** Silence after which the panel says that it hears nothing. */
const SILENT_MS = 30_000;

/** Epochs are spoken this often at most. */
const SPEAK_MS = 5_000;

/** How the charts are looked at: the page's own business, no kernel knows of it. */
type Choice = "perDevice" | "apart" | "whole";

/** An interval as it stands below its figure: none if it is so narrow that it reads like the figure. */
const interval = (range: string, figure: string): string => (range === figure ? "" : range);

let views = 0;

export class View {
  #live: Live;
  #root: HTMLElement;
  #theme: Theme;
  #ends: (() => void)[] = [];
  #frame = 0;
  #timer = 0;
  #visible = true;
  #spoken = { word: "" as string, epochs: -1, message: "", at: Number.NEGATIVE_INFINITY };
  #facts: Facts | null = null;
  #view: Record<Choice, boolean> = { perDevice: false, apart: false, whole: false };

  // What follows the run.
  #stateIcon = icon(SHAPES.starting);
  #state = h("span", { class: "ct-state-word" });
  #epochs = h("span", { class: "ct-epochs" });
  #time = h("span", { class: "ct-time" });
  #progress = h("progress", { class: "ct-progress", "aria-label": "Progress of the run" });
  #pause = h("button", { type: "button", class: "ct-button" });
  #stop = h("button", { type: "button", class: "ct-button" });
  #pauseWord = h("span");
  #stopWord = h("span");
  #pauseIcon = icon(PAUSE);
  #note = h("p", { class: "ct-note", hidden: true });
  #ask = h("div", { class: "ct-ask", role: "group", hidden: true });
  #askCost = h("p", { class: "ct-ask-cost" });
  #askDefault = h("p", { class: "ct-ask-default" });
  #yes = h("button", { type: "button", class: "ct-button ct-primary" }, "Continue");
  #no = h("button", { type: "button", class: "ct-button" }, "Stop");
  #power = this.#figure("Power now");
  #co2 = this.#figure("CO2eq so far");
  #energy = this.#figure("Energy so far");
  #ahead = this.#figure("Expected for the whole run");
  #figures = h("dl", { class: "ct-figures" });
  #nothing = h("p", { class: "ct-note", hidden: true });
  #charts = h("div", { class: "ct-charts" });
  #powerChart: Chart;
  #co2Chart: Chart;
  #movesChart: Chart;
  #stack = h("button", { type: "button", class: "ct-small" }, "Stacked");
  #devices = h("button", { type: "button", class: "ct-small" }, "Per device");
  #whole = h("button", { type: "button", class: "ct-small" }, "Whole run");
  #summary = h("summary");
  #details = h("details", { class: "ct-details" });
  #list = h("dl", { class: "ct-facts" });
  #status = h("div", { class: "ct-spoken", role: "status", "aria-live": "polite" });

  constructor(live: Live, element: HTMLElement) {
    this.#live = live;
    views += 1;
    const key = `ct-${views}`;
    this.#root = h("section", { class: "ct-notebook", "aria-label": "Power, energy and CO2eq of this cell" });
    this.#theme = new Theme(this.#root, () => this.#repaint());
    const speak = (text: string): void => say(this.#status, text);
    const chart = (title: string, height: number, together?: string): Chart =>
      new Chart({
        title,
        height,
        theme: this.#theme,
        speak,
        ...(together ? { together } : {}),
        zoomed: (range) => {
          if (!together) return;
          this.#powerChart.zoom(range, true);
          this.#co2Chart.zoom(range, true);
        },
      });
    this.#powerChart = chart("Power", 150, key);
    this.#co2Chart = chart("CO2eq so far", 150, key);
    this.#movesChart = chart("Expected CO2eq of the whole run, after each epoch", 110);
    this.#build();
    element.append(this.#root);

    this.#ends.push(live.watch(() => this.#soon()));
    if (typeof IntersectionObserver !== "undefined") {
      const sight = new IntersectionObserver((entries) => {
        this.#visible = entries.some((entry) => entry.isIntersecting);
        if (this.#visible) this.#soon();
      });
      sight.observe(this.#root);
      this.#ends.push(() => sight.disconnect());
    }
    const seen = (): void => this.#soon();
    document.addEventListener("visibilitychange", seen);
    this.#ends.push(() => document.removeEventListener("visibilitychange", seen));
    this.#timer = window.setInterval(() => this.#second(), 1000);
    this.#update();
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    window.clearInterval(this.#timer);
    for (const end of this.#ends) end();
    for (const chart of [this.#powerChart, this.#co2Chart, this.#movesChart]) chart.close();
    this.#theme.close();
    this.#root.remove();
  }

  #figure(name: string): { box: HTMLElement; name: HTMLElement; main: HTMLElement; more: HTMLElement } {
    const label = h("dt", {}, name);
    const main = h("span", { class: "ct-main" });
    const more = h("span", { class: "ct-more" });
    return { box: h("div", { class: "ct-figure" }, label, h("dd", {}, main, more)), name: label, main, more };
  }

  #build(): void {
    const live = this.#live;
    this.#pause.append(this.#pauseIcon, this.#pauseWord);
    this.#stop.append(icon(STOP), this.#stopWord);
    this.#pause.addEventListener("click", () => live.wish(this.#isHeld() ? "resume" : "pause"));
    this.#stop.addEventListener("click", () => live.wish(this.#isStopping() ? "go_on" : "stop"));
    this.#yes.addEventListener("click", () => live.answer(true));
    this.#no.addEventListener("click", () => live.answer(false));
    const question = h("h3", { class: "ct-ask-title", id: `ct-ask-${views}` }, "Go on with the training?");
    this.#ask.setAttribute("aria-labelledby", question.id);
    this.#ask.append(
      h("div", { class: "ct-ask-text" }, question, this.#askCost, this.#askDefault),
      h("div", { class: "ct-buttons" }, this.#yes, this.#no),
    );
    this.#figures.append(this.#power.box, this.#co2.box, this.#energy.box, this.#ahead.box);
    const toggle = (button: HTMLButtonElement, name: Choice, unset: boolean): void => {
      button.setAttribute("aria-pressed", String(unset !== this.#view[name]));
      button.addEventListener("click", () => {
        this.#view[name] = !this.#view[name];
        button.setAttribute("aria-pressed", String(unset !== this.#view[name]));
        if (name === "whole") this.#co2Chart.zoom(null);
        this.#drawCharts();
      });
    };
    toggle(this.#stack, "apart", true);
    toggle(this.#devices, "perDevice", false);
    toggle(this.#whole, "whole", false);
    this.#powerChart.tools.append(this.#stack, this.#devices);
    this.#co2Chart.tools.append(this.#whole);
    this.#charts.append(this.#powerChart.element, this.#co2Chart.element);
    this.#details.append(this.#summary, this.#list);
    this.#root.append(
      h(
        "header",
        { class: "ct-head" },
        h("div", { class: "ct-state" }, this.#stateIcon, this.#state),
        h("div", { class: "ct-where-we-are" }, this.#epochs, this.#time),
        h("div", { class: "ct-buttons" }, this.#pause, this.#stop),
      ),
      this.#progress,
      this.#ask,
      this.#note,
      this.#figures,
      this.#nothing,
      this.#charts,
      this.#movesChart.element,
      this.#details,
      this.#status,
    );
  }

  /** Update with the next frame, once, and only if anybody can see it. Speaking and a new state need no eyes. */
  #soon(): void {
    this.#speak();
    if (document.hidden || !this.#visible) {
      // The question that was just spoken has buttons, wherever the page is scrolled to.
      const status = this.#live.status;
      if (status && this.#word(status) !== this.#root.dataset["state"]) this.#update();
      return;
    }
    if (this.#frame) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#update();
    });
  }

  /** What goes on without a message: the countdown, and the silence of a kernel. */
  #second(): void {
    if (document.hidden || !this.#visible) return;
    const status = this.#live.status;
    if (status) {
      this.#showQuestion(status);
      this.#showNote(status);
    }
  }

  #word(status: Status): Word {
    return this.#live.connected || FINAL.has(status.state) ? status.state : "gone";
  }

  #isHeld(): boolean {
    const live = this.#live;
    const status = live.status;
    if (live.isFresh("pause")) return true;
    if (live.isFresh("resume")) return false;
    return status !== null && (status.pausing || status.state === "paused");
  }

  #isStopping(): boolean {
    const live = this.#live;
    if (live.isFresh("stop")) return true;
    if (live.isFresh("go_on")) return false;
    return live.status?.stopping ?? false;
  }

  #update(): void {
    const { facts, status } = this.#live;
    if (!facts || !status) {
      say(this.#state, "This panel cannot be read. It may be of another version of ct_notebook.");
      return;
    }
    const word = this.#word(status);
    if (this.#root.dataset["state"] !== word) {
      this.#root.dataset["state"] = word;
      this.#stateIcon.querySelector("path")?.setAttribute("d", SHAPES[word]);
    }
    say(this.#state, WORDS[word]);
    this.#showProgress(status);
    this.#showButtons(status, word);
    this.#showQuestion(status);
    this.#showNote(status);
    this.#showFigures(facts, status);
    if (facts !== this.#facts) {
      this.#facts = facts;
      this.#showFacts(facts);
    }
    this.#drawCharts();
    this.#speak();
  }

  #showProgress(status: Status): void {
    const { epochs, epochs_done, in_epoch, left_s, elapsed_s } = status;
    const current = Math.min(epochs_done + (in_epoch ? 1 : 0), epochs ?? Number.POSITIVE_INFINITY);
    say(
      this.#epochs,
      epochs === null ? (epochs_done ? `Epoch ${current}` : "") : `Epoch ${current} of ${epochs}`,
    );
    const left = status.left && !FINAL.has(status.state) ? `about ${status.left} left` : "";
    say(this.#time, [status.elapsed, left].filter(Boolean).join(" · "));
    const isDone = status.state === "finished";
    // Time rather than epochs where both are known: it moves within an epoch too.
    const share = isDone
      ? 1
      : left_s !== null && elapsed_s > 0
        ? elapsed_s / (elapsed_s + left_s)
        : epochs
          ? epochs_done / epochs
          : null;
    show(this.#progress, share !== null);
    if (share !== null) {
      this.#progress.max = 1;
      this.#progress.value = Math.min(1, share);
      this.#progress.setAttribute("aria-valuetext", `${epochs_done} of ${epochs ?? "?"} epochs`);
    }
  }

  #showButtons(status: Status, word: Word): void {
    const isOver = FINAL.has(word);
    const held = this.#isHeld();
    const stopping = this.#isStopping() && !isOver;
    say(this.#pauseWord, held ? "Resume" : "Pause");
    this.#pauseIcon.querySelector("path")?.setAttribute("d", held ? PLAY : PAUSE);
    say(this.#stopWord, stopping ? "Keep going" : "Stop after this epoch");
    this.#pause.disabled = isOver || status.state === "waiting";
    // A cell without epochs has no end of an epoch to stop at.
    const hasEpochs = status.epochs !== null || status.in_epoch || status.epochs_done > 0;
    this.#stop.disabled = isOver || status.state === "waiting" || !hasEpochs;
  }

  #showQuestion(status: Status): void {
    const question = this.#live.connected ? status.question : null;
    const hadFocus = this.#ask.contains(document.activeElement);
    show(this.#ask, question !== null);
    if (question === null) {
      // The buttons are gone, so whoever used the keyboard goes on from the ones above.
      if (hadFocus && !this.#pause.disabled) this.#pause.focus({ preventScroll: true });
      return;
    }
    const ahead = status.prediction;
    const parts = ahead
      ? [
          ahead.co2 && `${ahead.co2} CO2eq${ahead.co2_range === ahead.co2 ? "" : ` (${ahead.co2_range})`}`,
          ahead.energy,
          `${ahead.duration} in all`,
          ahead.equivalent,
        ]
      : [];
    const cost =
      ahead && `All ${ahead.epochs} epochs are expected to take ${parts.filter(Boolean).join(", ")}.`;
    say(this.#askCost, [question.about, cost].filter(Boolean).join(" "));
    const does = question.default === "continue" ? "continues" : "stops";
    const gone = (performance.now() - this.#live.statusAt) / 1000;
    say(
      this.#askDefault,
      question.left_s === null
        ? "Training waits until you answer."
        : `Without an answer it ${does} in ${countdown(question.left_s - gone)}.`,
    );
    const sent = this.#live.isFresh(question.token);
    this.#yes.disabled = this.#no.disabled = sent;
  }

  #showNote(status: Status): void {
    const silent = performance.now() - this.#live.heardAt;
    const word = this.#word(status);
    let text = status.message;
    if (word === "gone")
      text = "The kernel was restarted or cannot be reached. What was measured is in the log.";
    else if (!FINAL.has(word) && silent > SILENT_MS) {
      text = `No news from the kernel for ${countdown(silent / 1000)}. It may be busy; clicks are kept until it listens.`;
    } else if (word !== "paused" && word !== "waiting" && !FINAL.has(word)) {
      const held = this.#isHeld() && "Pausing at the next step.";
      const stopping = this.#isStopping() && "Stopping when this epoch ends.";
      text = held || stopping || text;
    } else if (word === "paused") {
      text = this.#isStopping()
        ? "Training is held. After Resume it goes on to the end of this epoch and stops there."
        : "Training is held. The wait counts for nothing.";
    }
    say(this.#note, text);
    show(this.#note, text !== "");
  }

  #showFigures(facts: Facts, status: Status): void {
    const has = facts.devices.length > 0;
    const ahead = status.prediction;
    show(this.#figures, has || ahead !== null);
    for (const { box } of [this.#power, this.#co2, this.#energy]) show(box, has);
    const paused = status.state === "paused" || status.state === "waiting";
    const over = FINAL.has(status.state);
    say(this.#power.main, over ? "–" : status.power || "–");
    const names = [
      ...new Set(facts.devices.map((device) => COMPONENTS[device.component]?.label ?? device.component)),
    ];
    say(this.#power.more, paused ? "not counted while waiting" : names.join(" + "));
    say(this.#co2.main, status.co2 || "–");
    say(
      this.#co2.more,
      status.co2
        ? [interval(status.co2_range, status.co2), status.equivalent, `at ${facts.intensity}`]
            .filter(Boolean)
            .join(" · ")
        : "nothing was read yet",
    );
    say(this.#energy.main, status.energy || "–");
    say(this.#energy.more, interval(status.energy_range, status.energy));
    show(this.#ahead.box, ahead !== null || (status.epochs !== null && !over));
    if (ahead) {
      say(this.#ahead.main, ahead.co2 ? `${ahead.co2} CO2eq` : ahead.duration);
      const range = interval(ahead.duration_range, ahead.duration);
      const time = range ? `${ahead.duration} (${range})` : ahead.duration;
      say(
        this.#ahead.more,
        [interval(ahead.co2_range, ahead.co2), ahead.energy, time, ahead.equivalent]
          .filter(Boolean)
          .join(" · "),
      );
      say(this.#ahead.name, `Expected for all ${ahead.epochs} epochs`);
      const seen =
        ahead.after === 0
          ? "from its first steps"
          : `after ${ahead.after} epoch${ahead.after === 1 ? "" : "s"}`;
      this.#ahead.box.title = `As seen ${seen}; the interval is meant to hold in 8 of 10 runs.`;
    } else {
      say(this.#ahead.main, "–");
      say(this.#ahead.more, "known after its first steps or its first epoch");
    }
    show(this.#nothing, !has);
    say(
      this.#nothing,
      has ? "" : "No component can be measured here, so only time is shown. Below is what was looked for.",
    );
  }

  #drawCharts(): void {
    const { facts, status, course, epochEnds, moves } = this.#live;
    if (!facts || !status) return;
    const has = facts.devices.length > 0;
    show(this.#charts, has);
    if (has) {
      const bySame = new Map<string, number[]>();
      facts.devices.forEach((device, at) => {
        bySame.set(device.component, [...(bySame.get(device.component) ?? []), at]);
      });
      const several = [...bySame.values()].some((devices) => devices.length > 1);
      show(this.#devices, several);
      show(this.#stack, facts.devices.length > 1);
      const curves = several && this.#view.perDevice ? this.#perDevice() : this.#perComponent(bySame);
      const isStacked = curves.length > 1 && !this.#view.apart;
      const heights = isStacked ? stacked(curves.map((curve) => curve.values)) : [];
      this.#powerChart.show({
        x: course.middles(),
        curves: curves
          .map((curve, at) =>
            isStacked ? { ...curve, values: heights[at] ?? [], told: curve.values, area: true } : curve,
          )
          .reverse(),
        // Each layer is filled down to the one below it, which comes next.
        ...(isStacked ? { bands: curves.slice(1).map((_, at): [number, number] => [at, at + 1]) } : {}),
        marks: epochEnds,
        unit: "W",
        xKind: "time",
        until: status.elapsed_s,
      });
      this.#co2Chart.show(this.#co2Picture(status));
      const newest = `Now ${status.power || "not read"}, ${status.co2 || "nothing"} CO2eq so far.`;
      this.#powerChart.describe(this.#spokenFigures(newest));
      this.#co2Chart.describe(this.#spokenFigures(newest));
    }
    show(this.#whole, status.prediction?.co2_g != null && !FINAL.has(status.state));
    show(this.#movesChart.element, moves.length > 1);
    if (moves.length > 1) {
      this.#movesChart.show({
        x: moves.map((move) => move[0]),
        curves: [
          { label: "expected", values: moves.map((move) => move[1]), token: "--ct-co2" },
          { label: "high", values: moves.map((move) => move[3]), token: "--ct-co2", bound: true },
          { label: "low", values: moves.map((move) => move[2]), token: "--ct-co2", bound: true },
        ],
        bands: [[1, 2]],
        unit: "g",
        xKind: "epochs",
      });
      this.#movesChart.describe(
        `After ${moves.at(-1)?.[0]} epochs: ${status.prediction?.co2 ?? ""}, ${status.prediction?.co2_range ?? ""}.`,
      );
    }
  }

  #spokenAt = -1;
  #spokenText = "";

  /** What a chart is called changes with epochs only: a name that changed each second would be read each second. */
  #spokenFigures(text: string): string {
    const done = this.#live.status?.epochs_done ?? 0;
    if (done !== this.#spokenAt) {
      this.#spokenAt = done;
      this.#spokenText = text;
    }
    return this.#spokenText;
  }

  #perComponent(bySame: Map<string, number[]>): Curve[] {
    return [...bySame].map(([component, devices]) => {
      const { label, token, dash } = COMPONENTS[component] ?? {
        label: component,
        token: "--ct-muted",
        dash: [],
      };
      const values: Value[] = total(devices.map((device) => this.#live.course.powers(device)));
      return { label: devices.length > 1 ? `${label} (${devices.length})` : label, values, token, dash };
    });
  }

  #perDevice(): Curve[] {
    return (this.#live.facts?.devices ?? []).map((device, at) => ({
      label: device.name || `device ${at + 1}`,
      values: this.#live.course.powers(at),
      token: `--ct-device-${at % 8}`,
      dash: DASHES[Math.floor(at / 8) % DASHES.length] ?? DASHES[at % 4] ?? [],
    }));
  }

  #co2Picture(status: Status): Picture {
    const { course, epochEnds } = this.#live;
    const x = course.times();
    const grams = course.grams();
    const ahead = status.prediction;
    const soFar: Curve = { label: "so far", values: grams, token: "--ct-co2", area: true };
    if (!this.#view.whole || !ahead?.co2_g || FINAL.has(status.state)) {
      return { x, curves: [soFar], marks: epochEnds, unit: "g", xKind: "time", until: status.elapsed_s };
    }
    const end = Math.max(ahead.duration_s[0], (x.at(-1) ?? 0) + 1e-3);
    const line = (figure: number): Value[] => [
      ...grams.map((each, at) => (at === grams.length - 1 ? each : null)),
      figure,
    ];
    const [middle, low, high] = ahead.co2_g;
    return {
      x: [...x, end],
      curves: [
        { ...soFar, values: [...grams, null] },
        { label: "expected", values: line(middle), token: "--ct-co2", dash: [5, 4] },
        { label: "high", values: line(high), token: "--ct-co2", bound: true },
        { label: "low", values: line(low), token: "--ct-co2", bound: true },
      ],
      bands: [[2, 3]],
      marks: epochEnds,
      unit: "g",
      xKind: "time",
      until: end,
    };
  }

  #showFacts(facts: Facts): void {
    const missing = facts.unmeasured.length;
    say(
      this.#summary,
      missing
        ? `How this is measured, and where · ${missing} ${missing === 1 ? "thing is" : "things are"} not measured`
        : "How this is measured, and where",
    );
    this.#list.textContent = "";
    const add = (name: string, ...lines: string[]): void => {
      const told = lines.filter(Boolean);
      if (!told.length) return;
      this.#list.append(
        h("dt", {}, name),
        h("dd", {}, ...told.map((line) => h("div", {}, h("bdi", {}, line)))),
      );
    };
    add("Place", facts.place, facts.place_how && `known by: ${facts.place_how}`);
    add(
      "Carbon intensity",
      facts.intensity,
      facts.is_fallback ? "The place is unknown, so an average stands in for it." : "",
      facts.source,
    );
    add("PUE", facts.pue, "Energy and CO2eq include it, power does not.");
    add("Measured", ...facts.devices.map((device) => `${device.name}: ${device.how}`));
    add(
      "Not measured",
      ...facts.unmeasured.map(
        (each) =>
          [each.what, each.remedy ? each.why.replace(/[^.!?]$/, "$&.") : each.why]
            .filter(Boolean)
            .join(": ") + (each.remedy ? ` To measure it: ${each.remedy}` : ""),
      ),
    );
    add("Notes", ...facts.notes);
    add("Log", facts.log);
  }

  /** Epochs and changes of state for screen readers; not each second. */
  #speak(): void {
    const status = this.#live.status;
    if (!status) return;
    const word = this.#word(status);
    const spoken = this.#spoken;
    const now = performance.now();
    const isNews = word !== spoken.word || status.message !== spoken.message;
    if (!isNews && (status.epochs_done === spoken.epochs || now - spoken.at < SPEAK_MS)) return;
    const parts: string[] = [WORDS[word]];
    if (status.message && status.message !== spoken.message) parts.push(status.message);
    if (status.epochs_done > 0) {
      parts.push(
        `${status.epochs_done}${status.epochs === null ? "" : ` of ${status.epochs}`} epochs, ${status.co2} CO2eq`,
      );
    }
    if (word === "waiting" && status.prediction) {
      parts.push(`Go on with the training? Expected: ${status.prediction.co2} CO2eq`);
    }
    this.#spoken = { word, epochs: status.epochs_done, message: status.message, at: now };
    say(this.#status, `${parts.join(". ")}.`);
  }

  #repaint(): void {
    for (const chart of [this.#powerChart, this.#co2Chart, this.#movesChart]) chart.repaint();
  }
}
