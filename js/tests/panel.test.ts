// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import fixture from "./snapshot.json";

// A canvas is nothing that jsdom has; what is drawn is looked at in a real browser.
vi.mock("uplot", () => ({
  default: class {
    scales = {};
    cursor = {};
    width = 0;
    setData(): void {}
    setScale(): void {}
    setCursor(): void {}
    setSize(): void {}
    valToPos(): number {
      return 0;
    }
    destroy(): void {}
  },
}));

import panel from "../src/index";
import type { Status } from "../src/schema";

type Listener = (...parts: unknown[]) => void;

class Model {
  listeners = new Map<string, Set<Listener>>();
  sent: Record<string, unknown>[] = [];
  snapshot: unknown;

  constructor(snapshot: unknown) {
    this.snapshot = snapshot;
  }
  get(): unknown {
    return this.snapshot;
  }
  on(event: string, listener: Listener): void {
    this.listeners.set(event, (this.listeners.get(event) ?? new Set()).add(listener));
  }
  off(event: string, listener: Listener): void {
    this.listeners.get(event)?.delete(listener);
  }
  send(content: Record<string, unknown>): void {
    this.sent.push(content);
  }
  emit(event: string, ...parts: unknown[]): void {
    for (const listener of this.listeners.get(event) ?? []) listener(...parts);
  }
  get heard(): number {
    return [...this.listeners.values()].reduce((sum, each) => sum + each.size, 0);
  }
}

let model: Model;
let element: HTMLElement;
let ends: (() => void)[];
let runs = 0;

const base = (): typeof fixture => {
  const snapshot = JSON.parse(JSON.stringify(fixture)) as typeof fixture;
  runs += 1;
  snapshot.facts.run = `run-${runs}`;
  return snapshot;
};

const frame = (): Promise<void> => new Promise((done) => requestAnimationFrame(() => done()));

function open(changes: Partial<Status> = {}, snapshot: typeof fixture = base()): void {
  Object.assign(snapshot.status, { question: null, state: "measuring" }, changes);
  model = new Model(snapshot);
  element = document.createElement("div");
  document.body.append(element);
  ends = [panel.initialize({ model: model as never }), panel.render({ model: model as never, el: element })];
}

async function tick(changes: Partial<Status>): Promise<void> {
  const snapshot = model.snapshot as typeof fixture;
  Object.assign(snapshot.status, changes);
  model.emit(
    "msg:custom",
    { type: "tick", run: snapshot.facts.run, status: { ...snapshot.status }, epoch_ends: [], moves: [] },
    [new DataView(new ArrayBuffer(0))],
  );
  await frame();
}

const button = (name: string): HTMLButtonElement => {
  const found = [...element.querySelectorAll("button")].find(
    (each) => each.textContent === name && !each.closest("[hidden]"),
  );
  if (!found) throw new Error(`there is no button ${name}`);
  return found;
};
const kinds = (): unknown[] => model.sent.map((message) => message["type"]);

beforeEach(() => vi.spyOn(console, "warn").mockImplementation(() => undefined));

afterEach(() => {
  for (const end of ends.splice(0).reverse()) end();
  element.remove();
  vi.restoreAllMocks();
});

test("it says hello when it is shown, and names its run", () => {
  open();
  expect(model.sent).toEqual([
    { type: "hello", run: `run-${runs}`, page: expect.any(String), n: 1, seq: fixture.status.seq },
  ]);
});

test("figures, epochs and what is not measured are there", () => {
  open();
  const text = element.textContent ?? "";
  for (const part of [
    "Measuring",
    "Epoch 3 of 10",
    fixture.status.co2,
    fixture.status.energy,
    "1 thing is not measured",
  ]) {
    expect(text).toContain(part);
  }
});

test("an interval that reads like its figure is not said twice", () => {
  open({ energy: "111 mWh", energy_range: "111 mWh", co2: "44.3 mg", co2_range: "44.3 mg" });
  const text = element.textContent ?? "";
  expect(text.split("111 mWh").length - 1).toBe(1);
  expect([...element.querySelectorAll(".ct-more")].some((each) => each.textContent?.includes("44.3"))).toBe(
    false,
  );
});

test("a tick changes texts and no element, and focus stays", async () => {
  open();
  const pause = button("Pause");
  pause.focus();
  const before = [...element.querySelectorAll("*")];
  await tick({ seq: 18, power: "987 W", elapsed: "0:00:21" });
  expect(element.textContent).toContain("987 W");
  expect(document.activeElement).toBe(pause);
  const after = new Set(element.querySelectorAll("*"));
  expect(before.filter((each) => !after.has(each) && !each.closest(".ct-stage"))).toEqual([]);
});

test("pause and resume", async () => {
  open();
  button("Pause").click();
  expect(kinds()).toEqual(["hello", "pause"]);
  await frame();
  expect(element.textContent).toContain("Pausing at the next step.");
  await tick({ state: "paused" });
  button("Resume").click();
  expect(kinds()).toEqual(["hello", "pause", "resume"]);
  await tick({ state: "measuring" });
  expect(button("Pause").disabled).toBe(false);
});

test("a stop can be taken back", async () => {
  open();
  button("Stop after this epoch").click();
  await tick({ stopping: true });
  expect(element.textContent).toContain("Stopping when this epoch ends.");
  button("Keep going").click();
  expect(kinds()).toEqual(["hello", "stop", "go_on"]);
});

test("a stop in a long epoch without steps stands until that epoch has ended", async () => {
  open();
  const done = fixture.status.epochs_done;
  button("Stop after this epoch").click();
  const clock = vi.spyOn(performance, "now");
  const later = performance.now() + 60_000;
  clock.mockReturnValue(later);
  await tick({ epochs_done: done });
  expect(button("Keep going").disabled).toBe(false);
  expect(element.textContent).toContain("Stopping when this epoch ends.");
  await tick({ epochs_done: done + 1 });
  expect(button("Stop after this epoch").disabled).toBe(false);
  clock.mockRestore();
});

test("a stop of a held training says that it waits for Resume", async () => {
  open({ state: "paused" });
  expect(element.textContent).not.toContain("After Resume");
  button("Stop after this epoch").click();
  await frame();
  expect(element.textContent).toContain("After Resume it goes on to the end of this epoch and stops there.");
  await tick({ stopping: true });
  button("Keep going").click();
  await frame();
  expect(element.textContent).toContain("The wait counts for nothing.");
});

test("what is missing and how to measure it are two sentences", () => {
  const snapshot = base();
  const found = { what: "RAPL", remedy: "chmod" };
  snapshot.facts.unmeasured = [
    { ...found, why: "permission denied" },
    { ...found, why: "May not be read." },
  ];
  open({}, snapshot);
  expect(element.textContent).toContain("RAPL: permission denied. To measure it: chmod");
  expect(element.textContent).toContain("RAPL: May not be read. To measure it: chmod");
});

test("a question is there for whoever does not see the page", async () => {
  open();
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  await tick({ state: "waiting", question: { token: "t", left_s: 9, default: "continue", about: "" } });
  vi.restoreAllMocks();
  expect(button("Continue").closest("[hidden]")).toBeNull();
});

test("a question is answered once, however often it is clicked", async () => {
  open({ state: "waiting", question: { token: "t1", left_s: 60, default: "stop", about: "" } });
  expect(element.textContent).toContain("Without an answer it stops in");
  expect(element.textContent).toContain(fixture.status.prediction.co2);
  button("Continue").click();
  button("Continue").click();
  button("Stop").click();
  const answers = model.sent.filter((message) => message["type"] === "answer");
  expect(answers).toEqual([
    { type: "answer", token: "t1", go_on: true, run: `run-${runs}`, page: expect.any(String), n: 2 },
  ]);
  await frame();
  expect(button("Continue").disabled).toBe(true);
  await tick({ state: "measuring", question: null });
  expect(element.querySelector<HTMLElement>(".ct-ask")?.hidden).toBe(true);
});

test("focus goes on to the buttons above when the question is gone", async () => {
  open({ state: "waiting", question: { token: "t2", left_s: null, default: "continue", about: "" } });
  button("Stop").focus();
  await tick({ state: "measuring", question: null });
  expect(document.activeElement).toBe(button("Pause"));
});

test("what was stopped is not offered to be kept going", async () => {
  open({ stopping: true });
  expect(button("Keep going").disabled).toBe(false);
  await tick({ state: "stopped", stopping: true });
  expect(button("Stop after this epoch").disabled).toBe(true);
});

test("the end of a run leaves no button to press", async () => {
  open();
  await tick({ state: "finished" });
  expect(button("Pause").disabled).toBe(true);
  expect(button("Stop after this epoch").disabled).toBe(true);
});

test("a kernel that is gone is told, and its data stay", async () => {
  open();
  model.emit("comm_live_update");
  await frame();
  expect(element.textContent).toContain("Kernel gone");
  expect(button("Pause").disabled).toBe(true);
  expect(element.textContent).toContain(fixture.status.co2);
  await tick({ seq: 30 });
  expect(button("Pause").disabled).toBe(false);
});

test("names are text, whatever is in them", () => {
  const snapshot = base();
  for (const device of snapshot.facts.devices) device.name = "<img src=x onerror=alert(1)>";
  for (const each of snapshot.facts.unmeasured) each.why = "</dd><script>alert(1)</script>";
  open({}, snapshot);
  expect(element.querySelector("img, script")).toBeNull();
  expect(element.textContent).toContain("<img src=x onerror=alert(1)>");
});

test("messages that cannot be read change nothing", async () => {
  open();
  const before = element.textContent;
  for (const content of [
    null,
    7,
    "x",
    {},
    { type: "tick" },
    { type: "tick", run: "another", status: {} },
    { type: "snapshot" },
  ]) {
    model.emit("msg:custom", content, []);
  }
  const other = {
    type: "tick",
    run: "another",
    status: { ...fixture.status, power: "1 W" },
    epoch_ends: [],
    moves: [],
  };
  model.emit("msg:custom", other, []);
  await frame();
  expect(element.textContent).toBe(before);
});

test("a state of another version is told in words", () => {
  open({}, { ...base(), schema: 99 });
  expect(element.textContent).toContain("cannot be read");
});

test("a snapshot replaces what was there", async () => {
  open();
  const snapshot = JSON.parse(JSON.stringify(model.snapshot)) as typeof fixture;
  snapshot.facts.place = "Sweden";
  model.emit("msg:custom", { type: "snapshot", run: snapshot.facts.run, snapshot }, [new ArrayBuffer(0)]);
  await frame();
  expect(element.textContent).toContain("Sweden");
});

test("states are spoken, seconds are not", async () => {
  open();
  const spoken = element.querySelector('[role="status"]');
  const first = spoken?.textContent;
  await tick({ seq: 40, elapsed: "0:01:00", power: "1 W" });
  expect(spoken?.textContent).toBe(first);
  await tick({ state: "paused" });
  expect(spoken?.textContent).toContain("Paused");
});

test("a cell without epochs has nothing to stop at", () => {
  open({ epochs: null, epochs_done: 0, in_epoch: false, prediction: null });
  expect(button("Stop after this epoch").disabled).toBe(true);
});

test("what was listened to is let go", () => {
  open();
  for (const end of ends.splice(0).reverse()) end();
  expect(model.heard).toBe(0);
  expect(element.children.length).toBe(0);
});
