// What the kernel sends, as types, and guards that tell it from anything else.

export const SCHEMA = 1;

export interface Device {
  name: string;
  component: string;
  how: string;
}

export interface Unmeasured {
  what: string;
  why: string;
  remedy: string;
}

export interface Facts {
  run: string;
  devices: Device[];
  place: string;
  place_how: string;
  intensity: string;
  source: string;
  is_fallback: boolean;
  pue: string;
  unmeasured: Unmeasured[];
  notes: string[];
  log: string;
}

/** A figure with the ends of its interval. */
export type Triple = [number, number, number];

export interface Prediction {
  after: number;
  epochs: number;
  co2: string;
  co2_range: string;
  energy: string;
  energy_range: string;
  duration: string;
  duration_range: string;
  equivalent: string;
  co2_g: Triple | null;
  duration_s: Triple;
}

export interface Question {
  token: string;
  left_s: number | null;
  default: "continue" | "stop";
  about: string;
}

export const STATES = [
  "starting",
  "measuring",
  "paused",
  "waiting",
  "stopped",
  "finished",
  "interrupted",
  "failed",
] as const;

export type State = (typeof STATES)[number];

export interface Status {
  seq: number;
  state: State;
  pausing: boolean;
  stopping: boolean;
  elapsed_s: number;
  elapsed: string;
  epochs_done: number;
  epochs: number | null;
  in_epoch: boolean;
  left_s: number | null;
  left: string;
  power_w: number | null;
  powers_w: (number | null)[];
  power: string;
  energy: string;
  energy_range: string;
  co2: string;
  co2_range: string;
  equivalent: string;
  prediction: Prediction | null;
  question: Question | null;
  message: string;
}

/** What was expected of the whole run after k epochs: k, grams, low, high. */
export type Move = [number, number, number, number];

export interface Curves {
  rows: number;
  columns: number;
  data?: unknown;
}

export interface Snapshot {
  schema: number;
  facts: Facts;
  status: Status;
  epoch_ends: number[];
  moves: Move[];
  curves: Curves;
}

export interface Tick {
  type: "tick";
  run: string;
  status: Status;
  epoch_ends: number[];
  moves: Move[];
}

type Thing = Record<string, unknown>;

const isThing = (value: unknown): value is Thing =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);
const isNumberOrNull = (value: unknown): boolean => value === null || isNumber(value);
const isListOf =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    Array.isArray(value) && value.every(check);
const has = (thing: Thing, check: (value: unknown) => boolean, ...names: string[]): boolean =>
  names.every((name) => check(thing[name]));

const isTriple = (value: unknown): boolean => isListOf(isNumber)(value) && (value as unknown[]).length === 3;
const isMove = (value: unknown): boolean => isListOf(isNumber)(value) && (value as unknown[]).length === 4;

function isPrediction(value: unknown): boolean {
  return (
    value === null ||
    (isThing(value) &&
      has(value, isNumber, "after", "epochs") &&
      has(value, isText, "co2", "co2_range", "energy", "energy_range", "duration", "duration_range") &&
      has(value, isText, "equivalent") &&
      (value["co2_g"] === null || isTriple(value["co2_g"])) &&
      isTriple(value["duration_s"]))
  );
}

function isQuestion(value: unknown): boolean {
  return (
    value === null ||
    (isThing(value) &&
      isText(value["token"]) &&
      isNumberOrNull(value["left_s"]) &&
      isText(value["about"]) &&
      (value["default"] === "continue" || value["default"] === "stop"))
  );
}

export function isStatus(value: unknown): value is Status {
  return (
    isThing(value) &&
    has(value, isNumber, "seq", "elapsed_s", "epochs_done") &&
    has(value, isNumberOrNull, "epochs", "left_s", "power_w") &&
    has(value, isText, "elapsed", "left", "power", "energy", "energy_range", "co2", "co2_range") &&
    has(value, isText, "equivalent", "message") &&
    has(value, (flag) => typeof flag === "boolean", "pausing", "stopping", "in_epoch") &&
    isListOf(isNumberOrNull)(value["powers_w"]) &&
    (STATES as readonly unknown[]).includes(value["state"]) &&
    isPrediction(value["prediction"]) &&
    isQuestion(value["question"])
  );
}

function isFacts(value: unknown): value is Facts {
  const ofTexts =
    (...names: string[]) =>
    (each: unknown) =>
      isThing(each) && has(each, isText, ...names);
  return (
    isThing(value) &&
    has(value, isText, "run", "place", "place_how", "intensity", "source", "pue", "log") &&
    typeof value["is_fallback"] === "boolean" &&
    isListOf(ofTexts("name", "component", "how"))(value["devices"]) &&
    isListOf(ofTexts("what", "why", "remedy"))(value["unmeasured"]) &&
    isListOf(isText)(value["notes"])
  );
}

export function isSnapshot(value: unknown): value is Snapshot {
  return (
    isThing(value) &&
    value["schema"] === SCHEMA &&
    isFacts(value["facts"]) &&
    isStatus(value["status"]) &&
    isListOf(isNumber)(value["epoch_ends"]) &&
    isListOf(isMove)(value["moves"]) &&
    isThing(value["curves"]) &&
    has(value["curves"], isNumber, "rows", "columns")
  );
}

export function isTick(value: unknown): value is Tick {
  return (
    isThing(value) &&
    value["type"] === "tick" &&
    isText(value["run"]) &&
    isStatus(value["status"]) &&
    isListOf(isNumber)(value["epoch_ends"]) &&
    isListOf(isMove)(value["moves"])
  );
}

/** Binary data in any of the forms in which widget managers hand it over, as float32; none if it is no data. */
export function floats(data: unknown): Float32Array {
  let bytes: Uint8Array;
  if (data instanceof ArrayBuffer) bytes = new Uint8Array(data);
  else if (ArrayBuffer.isView(data)) bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  else return new Float32Array(0);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const values = new Float32Array(Math.floor(bytes.byteLength / 4));
  for (let at = 0; at < values.length; at++) values[at] = view.getFloat32(4 * at, true);
  return values;
}
