import { expect, test } from "vitest";
import { Course, stacked, total } from "../src/course";

const rows = (...figures: number[][]): Float32Array => new Float32Array(figures.flat());

test("power is the slope of the joules", () => {
  const course = new Course(2);
  course.add(rows([0, 0, 0, 0], [2, 1, 200, 20], [3, 2, 400, 30]));
  expect(course.powers(0)).toEqual([100, 200]);
  expect(course.powers(1)).toEqual([10, 10]);
  expect(course.middles()).toEqual([0, 3]);
  expect(course.grams()).toEqual([0, 1, 2]);
});

test("what was not read is a gap, not zero", () => {
  const course = new Course(1);
  course.add(rows([0, 0, 0], [1, 1, Number.NaN], [2, 2, 20], [3, 3, 30]));
  expect(course.powers(0)).toEqual([null, null, 10]);
});

test("rows that are not later are left out, and half a row too", () => {
  const course = new Course(1);
  course.add(rows([1, 0, 0], [1, 5, 5], [0.5, 5, 5]));
  course.add(new Float32Array([2, 1]));
  expect(course.times()).toEqual([1]);
});

test("a day at one row a second stays bounded, even and exact", () => {
  const course = new Course(1, 500);
  for (let second = 0; second <= 86_400; second++) course.add(rows([second, second, 100 * second]));
  const times = course.times();
  expect(times.length).toBeLessThanOrEqual(500);
  expect(times.length).toBeGreaterThan(200);
  expect(times[0]).toBe(0);
  expect(times.at(-1)).toBe(86_400);
  expect(course.powers(0).every((power) => Math.abs((power ?? 0) - 100) < 0.5)).toBe(true);
  const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(4 * Math.min(...gaps.slice(0, -1)));
});

test("a curve is as dense at its end as at its beginning", () => {
  const course = new Course(1, 100);
  for (let second = 0; second <= 140; second++) course.add(rows([second, second, 100 * second]));
  const times = course.times();
  const gaps = times.slice(1, -1).map((time, at) => time - (times[at] ?? 0));
  expect(new Set(gaps).size).toBe(1);
});

test("a sum leaves out what was not read", () => {
  expect(
    total([
      [1, null, null],
      [2, 3, null],
    ]),
  ).toEqual([3, 3, null]);
});

test("layers lie on top of each other", () => {
  expect(
    stacked([
      [1, 2],
      [10, null],
      [100, 100],
    ]),
  ).toEqual([
    [1, 2],
    [11, null],
    [111, 102],
  ]);
});
