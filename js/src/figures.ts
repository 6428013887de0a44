// Numbers come in, texts for axes and hover values go out. All other texts are made by the kernel.

type Scale = readonly (readonly [number, string])[];

const SCALES: Record<"W" | "g", Scale> = {
  W: [
    [1e3, "kW"],
    [1, "W"],
    [1e-3, "mW"],
  ],
  g: [
    [1e6, "t"],
    [1e3, "kg"],
    [1, "g"],
    [1e-3, "mg"],
    [1e-6, "µg"],
  ],
};

export type Unit = keyof typeof SCALES;

/** The size and name of the unit in which a figure is at least 1. */
export function scaleFor(figure: number, unit: Unit): readonly [number, string] {
  const scale = SCALES[unit];
  return (
    scale.find(([size]) => Math.abs(figure) >= size) ??
    (figure === 0
      ? (scale.find(([size]) => size === 1) ?? [1, unit])
      : (scale[scale.length - 1] ?? [1, unit]))
  );
}

/** So many significant digits, never an exponent. */
export function digits(figure: number, significant = 3): string {
  if (figure === 0 || !Number.isFinite(figure)) return "0";
  const decimals = significant - 1 - Math.floor(Math.log10(Math.abs(figure)));
  return decimals < 0
    ? String(Math.round(figure / 10 ** -decimals) * 10 ** -decimals)
    : figure.toFixed(Math.min(decimals, 9));
}

/** A figure with its unit; a dash where nothing was read. */
export function withUnit(figure: number | null, unit: Unit): string {
  if (figure === null) return "–";
  const [size, name] = scaleFor(figure, unit);
  return `${digits(figure / size)} ${name}`;
}

/** Seconds as a clock shows them. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (part: number): string => String(part).padStart(2, "0");
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** Seconds on an axis whose ticks are `step` apart: in the coarsest unit that tells them apart. */
export function axisTime(seconds: number, step: number): string {
  const whole = Math.round(seconds);
  if (step < 1) return `${seconds.toFixed(1)} s`;
  if (step < 60 && whole < 120) return `${whole} s`;
  if (step < 60) return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
  if (step < 3600 && whole < 7200) return `${Math.round(whole / 60)} min`;
  if (step < 3600)
    return `${Math.floor(whole / 3600)}:${String(Math.round(whole / 60) % 60).padStart(2, "0")} h`;
  if (step < 86400) return `${Math.round(whole / 3600)} h`;
  return `${Math.round(whole / 86400)} d`;
}

/** A time that counts down, as a person says it. */
export function countdown(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor(whole / 60) % 60} min`;
}
