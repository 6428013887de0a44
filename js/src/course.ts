// Rows of cumulative figures come in; the curves of the charts go out. Bounded, whatever the length of the run.

/** Rows kept at most: one for each pixel of a chart on a sharp screen. */
export const ROWS = 1000;

/** A value of a curve; null is a gap. */
export type Value = number | null;

const value = (figure: number | undefined): Value =>
  figure === undefined || Number.isNaN(figure) ? null : figure;

export class Course {
  #limit: number;
  #spacing = 0;
  #rows: number[][] = [];
  readonly columns: number;

  /** @param devices how many devices a row has joules of, after its seconds and grams */
  constructor(devices: number, limit = ROWS) {
    this.columns = 2 + devices;
    this.#limit = limit;
  }

  get length(): number {
    return this.#rows.length;
  }

  /** Take rows, one after the other in one array. What is no whole row, or not later than the last, is left out. */
  add(figures: Float32Array): void {
    for (let at = 0; at + this.columns <= figures.length; at += this.columns) {
      this.#add(Array.from(figures.subarray(at, at + this.columns)));
    }
  }

  /** Even spacing over the whole run: a row takes the last one's place if that is too close to the one before. */
  #add(row: number[]): void {
    const rows = this.#rows;
    const time = (at: number): number => rows[at]?.[0] ?? Number.NEGATIVE_INFINITY;
    const now = row[0];
    if (now === undefined || !(now > time(rows.length - 1))) return;
    if (rows.length > 1 && time(rows.length - 1) - time(rows.length - 2) < this.#spacing) {
      rows[rows.length - 1] = row;
      return;
    }
    rows.push(row);
    if (rows.length <= this.#limit) return;
    this.#spacing = Math.max(2 * this.#spacing, (2 * (now - time(0))) / this.#limit);
    const kept = rows.slice(0, 1);
    for (const each of rows.slice(1, -1)) {
      if ((each[0] ?? 0) - (kept[kept.length - 1]?.[0] ?? 0) >= this.#spacing) kept.push(each);
    }
    kept.push(row);
    this.#rows = kept;
  }

  /** Seconds of the run at each row. */
  times(): number[] {
    return this.#rows.map((row) => row[0] ?? 0);
  }

  /** Grams so far at each row. */
  grams(): Value[] {
    return this.#rows.map((row) => value(row[1]));
  }

  /** Where the power of each stretch between two rows is drawn: its middle; the ends for the first and last. */
  middles(): number[] {
    const times = this.times();
    const last = times.length - 2;
    return times
      .slice(1)
      .map((time, at) =>
        at === 0 && last > 0 ? (times[0] ?? 0) : at === last ? time : (time + (times[at] ?? 0)) / 2,
      );
  }

  /** Power of a device over each stretch, W: the slope of its joules; null if it was not read at either end. */
  powers(device: number): Value[] {
    return this.#rows.slice(1).map((row, at) => {
      const before = this.#rows[at];
      const from = value(before?.[2 + device]);
      const to = value(row[2 + device]);
      const seconds = (row[0] ?? 0) - (before?.[0] ?? 0);
      return from === null || to === null || seconds <= 0 ? null : Math.max(0, (to - from) / seconds);
    });
  }
}

/** The sum of curves at each place; null where none of them has a value. */
export function total(curves: Value[][]): Value[] {
  const first = curves[0] ?? [];
  return first.map((_, at) => {
    const known = curves.map((curve) => curve[at] ?? null).filter((each): each is number => each !== null);
    return known.length ? known.reduce((sum, each) => sum + each, 0) : null;
  });
}

/** Curves on top of each other: each becomes the sum of itself and those before it. */
export function stacked(curves: Value[][]): Value[][] {
  return curves.map((curve, place) =>
    curve.map((own, at) =>
      own === null ? null : curves.slice(0, place).reduce((sum, below) => sum + (below[at] ?? 0), own),
    ),
  );
}
