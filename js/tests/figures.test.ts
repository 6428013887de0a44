import { expect, test } from "vitest";
import { axisTime, clock, countdown, digits, withUnit } from "../src/figures";

test("figures have three digits and the unit that fits", () => {
  expect(withUnit(1234, "W")).toBe("1.23 kW");
  expect(withUnit(0.5, "W")).toBe("500 mW");
  expect(withUnit(0, "g")).toBe("0 g");
  expect(withUnit(0.0000004, "g")).toBe("0.400 µg");
  expect(withUnit(2_500_000, "g")).toBe("2.50 t");
  expect(withUnit(null, "W")).toBe("–");
});

test("no figure has an exponent", () => {
  for (const figure of [1e-12, 1e15, 123456789]) expect(digits(figure)).not.toMatch(/e/);
});

test("times", () => {
  expect(clock(3661)).toBe("1:01:01");
  expect(clock(59.6)).toBe("0:01:00");
  expect(countdown(59.2)).toBe("1 min 0 s");
  expect(countdown(5)).toBe("5 s");
  expect(countdown(-3)).toBe("0 s");
  expect(countdown(7384)).toBe("2 h 3 min");
});

test("an axis says times in the unit that tells its ticks apart", () => {
  expect(axisTime(1.5, 0.5)).toBe("1.5 s");
  expect(axisTime(90, 30)).toBe("90 s");
  expect(axisTime(150, 30)).toBe("2:30");
  expect(axisTime(600, 300)).toBe("10 min");
  expect(axisTime(9000, 1800)).toBe("2:30 h");
  expect(axisTime(43_200, 14_400)).toBe("12 h");
  expect(axisTime(172_800, 86_400)).toBe("2 d");
});
