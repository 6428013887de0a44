import { expect, test } from "vitest";
import { floats, isSnapshot, isTick } from "../src/schema";
import fixture from "./snapshot.json";

const copy = (): typeof fixture => JSON.parse(JSON.stringify(fixture));

test("what the kernel sends is read", () => {
  expect(isSnapshot(fixture)).toBe(true);
});

test("every field is needed", () => {
  const parts: Record<string, Record<string, unknown>> = {
    "": fixture,
    facts: fixture.facts,
    status: fixture.status,
  };
  for (const [part, fields] of Object.entries(parts)) {
    for (const name of Object.keys(fields)) {
      const broken = copy() as unknown as Record<string, Record<string, unknown>>;
      const target = part ? broken[part] : (broken as Record<string, unknown>);
      delete (target as Record<string, unknown>)[name];
      expect(isSnapshot(broken), `without ${part}.${name}`).toBe(false);
    }
  }
});

test("another version is not read", () => {
  expect(isSnapshot({ ...fixture, schema: 2 })).toBe(false);
});

test("figures that are none are refused", () => {
  expect(isSnapshot({ ...fixture, status: { ...fixture.status, elapsed_s: Number.NaN } })).toBe(false);
  expect(isSnapshot({ ...fixture, status: { ...fixture.status, state: "dancing" } })).toBe(false);
  expect(isSnapshot({ ...fixture, moves: [[1, 2, 3]] })).toBe(false);
});

test("a tick is a status with what is new", () => {
  const tick = { type: "tick", run: fixture.facts.run, status: fixture.status, epoch_ends: [1], moves: [] };
  expect(isTick(tick)).toBe(true);
  expect(isTick({ ...tick, epoch_ends: ["1"] })).toBe(false);
  expect(isTick(null)).toBe(false);
});

test("binary data is read in every form, wherever it begins", () => {
  const bytes = new Uint8Array(13);
  new DataView(bytes.buffer).setFloat32(1, 1.5, true);
  new DataView(bytes.buffer).setFloat32(5, Number.NaN, true);
  const view = new DataView(bytes.buffer, 1, 8);
  expect(Array.from(floats(view))).toEqual([1.5, Number.NaN]);
  expect(Array.from(floats(bytes.slice(1, 9).buffer))).toEqual([1.5, Number.NaN]);
  expect(floats(undefined).length).toBe(0);
});
