// Messages of the kernel come in; the run as the views show it stands here. One for each widget model.

import { Course } from "./course";
import { type Facts, floats, isSnapshot, isTick, type Move, type Snapshot, type Status } from "./schema";

/** What this needs of anywidget's model. */
export interface Model {
  get(name: string): unknown;
  on(event: string, callback: (...parts: never[]) => void): void;
  off(event: string, callback: (...parts: never[]) => void): void;
  send(content: unknown): void;
}

/** Epoch ends and forecasts kept at most. */
const KEPT = 480;

/** A click is shown as done for so long, until the kernel says so itself; a wish to the end of the epoch too. */
const TRUST_MS = 10_000;

export class Live {
  facts: Facts | null = null;
  status: Status | null = null;
  course = new Course(0);
  epochEnds: number[] = [];
  moves: Move[] = [];
  /** Whether the kernel can be reached, as far as the page knows. */
  connected = true;
  /** When something last came, by `performance.now()`. */
  heardAt = performance.now();
  /** When the newest status came: countdowns begin there. */
  statusAt = performance.now();

  #model: Model;
  #page = Array.from({ length: 4 }, () => Math.random().toString(36).slice(2, 8)).join("");
  #sent = 0;
  #views = new Set<() => void>();
  #wishes = new Map<string, { at: number; epochs: number }>();
  #onMessage: (content: unknown, buffers: unknown) => void;
  #onLink: () => void;

  constructor(model: Model) {
    this.#model = model;
    const snapshot = model.get("snapshot");
    if (isSnapshot(snapshot)) this.#replace(snapshot, snapshot.curves.data);
    else console.warn("ct_notebook: the state of the panel cannot be read; it may be of another version.");
    this.#onMessage = (content, buffers) => this.receive(content, Array.isArray(buffers) ? buffers : []);
    this.#onLink = () => {
      // The event says that it changed, not to what; a message that comes settles it.
      this.connected = !this.connected;
      if (this.connected) this.hello();
      this.#changed();
    };
    model.on("msg:custom", this.#onMessage as never);
    model.on("comm_live_update", this.#onLink as never);
  }

  close(): void {
    this.#model.off("msg:custom", this.#onMessage as never);
    this.#model.off("comm_live_update", this.#onLink as never);
    this.#views.clear();
  }

  /** Have a function called whenever something has changed. Returns what ends that. */
  watch(view: () => void): () => void {
    this.#views.add(view);
    return () => this.#views.delete(view);
  }

  hello(): void {
    this.#send("hello", { seq: this.status?.seq ?? 0 });
  }

  /** Tell the kernel of a click. Shown as done at once. */
  wish(type: "pause" | "resume" | "stop" | "go_on"): void {
    this.#wishes.delete(
      type === "pause" ? "resume" : type === "resume" ? "pause" : type === "stop" ? "go_on" : "stop",
    );
    // A training without steps listens when its epoch ends, which may be hours from now.
    this.#wishes.set(type, { at: performance.now(), epochs: this.status?.epochs_done ?? 0 });
    this.#send(type, {});
    this.#changed();
  }

  /** Answer the question. Clicks after the first are left out. */
  answer(goOn: boolean): void {
    const question = this.status?.question;
    if (!question || this.isFresh(question.token)) return;
    this.#wishes.set(question.token, { at: performance.now(), epochs: -1 });
    this.#send("answer", { token: question.token, go_on: goOn });
    this.#changed();
  }

  /** Whether a wish was sent and the kernel, as far as can be told, has had no chance to take it up yet. */
  isFresh(wish: string): boolean {
    const sent = this.#wishes.get(wish);
    if (!sent) return false;
    return performance.now() - sent.at < TRUST_MS || (this.status?.epochs_done ?? 0) <= sent.epochs;
  }

  receive(content: unknown, buffers: unknown[]): void {
    const message = content as { type?: unknown; run?: unknown; snapshot?: unknown } | null;
    if (isTick(content) && this.facts && content.run === this.facts.run) {
      this.#heard();
      this.#take(content.status);
      this.course.add(floats(buffers[0]));
      this.epochEnds = [...this.epochEnds, ...content.epoch_ends].slice(-KEPT);
      this.moves = [
        ...this.moves,
        ...content.moves.filter((move) => move[0] > (this.moves.at(-1)?.[0] ?? 0)),
      ];
      if (this.moves.length > KEPT) this.moves = this.moves.filter((_, at) => at % 2 === 0 || at === KEPT);
    } else if (
      message?.type === "snapshot" &&
      isSnapshot(message.snapshot) &&
      this.#isOurs(message.snapshot)
    ) {
      this.#heard();
      this.#replace(message.snapshot, buffers[0]);
    } else {
      console.warn("ct_notebook: a message that cannot be read was left out.");
      return;
    }
    this.#changed();
  }

  #isOurs(snapshot: Snapshot): boolean {
    return !this.facts || snapshot.facts.run === this.facts.run;
  }

  #heard(): void {
    this.heardAt = performance.now();
    this.connected = true;
  }

  #replace(snapshot: Snapshot, data: unknown): void {
    const isLonger =
      this.course.length > snapshot.curves.rows && snapshot.curves.columns === this.course.columns;
    this.facts = snapshot.facts;
    this.#take(snapshot.status);
    if (!isLonger) {
      // What this page has gathered is finer than the kernel's history, if it was there from the beginning.
      this.course = new Course(Math.max(0, snapshot.curves.columns - 2));
      this.epochEnds = [...snapshot.epoch_ends];
      this.moves = [...snapshot.moves];
    }
    this.course.add(floats(data));
  }

  #take(status: Status): void {
    this.status = status;
    this.statusAt = performance.now();
    if (status.pausing || status.state === "paused") this.#wishes.delete("pause");
    if (!status.pausing && status.state !== "paused") this.#wishes.delete("resume");
    this.#wishes.delete(status.stopping ? "stop" : "go_on");
  }

  #send(type: string, more: Record<string, unknown>): void {
    if (!this.facts) return;
    this.#sent += 1;
    try {
      this.#model.send({ type, run: this.facts.run, page: this.#page, n: this.#sent, ...more });
    } catch (fault) {
      console.warn("ct_notebook: the kernel cannot be reached.", fault);
      this.connected = false;
    }
  }

  #changed(): void {
    for (const view of this.#views) view();
  }
}
