// Curves come in; a chart with axes, legend, hover values, zoom and keyboard goes out. uPlot draws.

import uPlot from "uplot";
import type { Value } from "./course";
import { h, say, show, swatch } from "./dom";
import { axisTime, clock, digits, scaleFor, type Unit, withUnit } from "./figures";
import { faint, type Theme } from "./theme";

export interface Curve {
  label: string;
  /** As drawn. */
  values: Value[];
  /** As told, if that is something else (stacked curves). */
  told?: Value[];
  token: string;
  dash?: number[];
  area?: boolean;
  /** A bound of an interval: drawn faintly, told with the curve before. */
  bound?: boolean;
  width?: number;
}

export interface Picture {
  x: number[];
  curves: Curve[];
  /** Pairs of curves, upper and lower, between which an interval is drawn. */
  bands?: [number, number][];
  /** Where dashed lines stand. */
  marks?: number[];
  unit: Unit;
  xKind: "time" | "epochs";
  /** How far the x axis reaches at least. */
  until?: number;
}

export interface ChartOptions {
  title: string;
  height: number;
  theme: Theme;
  /** Charts with the same key move their cursors together. */
  together?: string;
  speak: (text: string) => void;
  zoomed?: (range: [number, number] | null) => void;
}

const HEIGHT_MIN = 90;

export class Chart {
  readonly element: HTMLElement;
  readonly tools = h("div", { class: "ct-tools" });
  #plot: uPlot | null = null;
  #picture: Picture = { x: [], curves: [], unit: "W", xKind: "time" };
  #options: ChartOptions;
  #stage = h("div", { class: "ct-stage" });
  #legend = h("ul", { class: "ct-legend" });
  #where = h("span", { class: "ct-where" });
  #unzoom = h("button", { type: "button", class: "ct-small" }, "Reset zoom");
  #entries: { item: HTMLElement; value: HTMLElement; curve: number; bounds: number[] }[] = [];
  #shape = "";
  #zoom: [number, number] | null = null;
  #cursor: number | null = null;
  #size: ResizeObserver | null = null;
  #look = "";
  #unitSize = 1;

  constructor(options: ChartOptions) {
    this.#options = options;
    const title = h("h3", { class: "ct-chart-title" }, options.title);
    this.element = h(
      "figure",
      { class: "ct-chart" },
      h("div", { class: "ct-chart-head" }, title, this.#unzoom, this.tools),
      this.#stage,
      h("figcaption", {}, this.#legend, this.#where),
    );
    this.#stage.tabIndex = 0;
    this.#stage.setAttribute("role", "img");
    this.#stage.addEventListener("keydown", (event) => this.#key(event));
    this.#stage.addEventListener("blur", () => this.#point(null));
    this.#unzoom.addEventListener("click", () => {
      this.zoom(null);
      this.#stage.focus({ preventScroll: true });
    });
    show(this.#unzoom, false);
    if (typeof ResizeObserver !== "undefined") {
      this.#size = new ResizeObserver(() => this.#fit());
      this.#size.observe(this.#stage);
    }
  }

  close(): void {
    this.#size?.disconnect();
    this.#plot?.destroy();
    this.#plot = null;
  }

  /** Name what the chart shows and its newest values, for those who do not see it. */
  describe(text: string): void {
    const label = `${this.#options.title}. ${text} Arrow keys move between values.`;
    if (this.#stage.getAttribute("aria-label") !== label) this.#stage.setAttribute("aria-label", label);
  }

  show(picture: Picture): void {
    this.#picture = picture;
    const bands = JSON.stringify(picture.bands ?? []);
    const shape = `${picture.unit} ${picture.xKind} ${bands} ${picture.curves
      .map((curve) => [curve.label, curve.token, curve.area, curve.bound, curve.dash].join())
      .join("|")}`;
    // Colours stand in the plot: one that was drawn before the style sheet was there is drawn anew.
    const look = `${this.#options.theme.color("--ct-muted")} ${this.#options.theme.color("--ct-grid")}`;
    if (look !== this.#look) {
      this.#look = look;
      for (const { item, curve } of this.#entries) this.#dye(item, curve);
      this.#plot?.destroy();
      this.#plot = null;
    }
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#name();
      this.#plot?.destroy();
      this.#plot = null;
    }
    this.#scale();
    if (!this.#plot) this.#draw();
    else {
      this.#plot.setData(this.#data(), false);
      this.#range();
    }
    this.#tell();
  }

  /** Draw anew, in the colours of now. */
  repaint(): void {
    for (const { item, curve } of this.#entries) this.#dye(item, curve);
    this.#plot?.destroy();
    this.#plot = null;
    if (this.#picture.x.length) this.#draw();
  }

  zoom(range: [number, number] | null, silently = false): void {
    this.#zoom = range;
    show(this.#unzoom, range !== null);
    this.#range();
    if (!silently) this.#options.zoomed?.(range);
  }

  #data(): uPlot.AlignedData {
    return [this.#picture.x, ...this.#picture.curves.map((curve) => curve.values)] as uPlot.AlignedData;
  }

  #span(): [number, number] {
    const { x, until, xKind } = this.#picture;
    const first = xKind === "time" ? 0 : (x[0] ?? 0);
    const last = Math.max(x.at(-1) ?? 0, until ?? 0);
    return [first, last > first ? last : first + 1];
  }

  #range(): void {
    const [min, max] = this.#zoom ?? this.#span();
    this.#plot?.setScale("x", { min, max });
  }

  /** The unit of the axis, from the largest value. */
  #scale(): void {
    let top = 0;
    for (const curve of this.#picture.curves)
      for (const value of curve.values) top = Math.max(top, value ?? 0);
    const [size, name] = scaleFor(top, this.#picture.unit);
    this.#unitSize = size;
    this.#stage.dataset["unit"] = name;
  }

  #draw(): void {
    const { theme, together } = this.#options;
    const picture = this.#picture;
    const text = theme.color("--ct-muted");
    const font = `11px ${getComputedStyle(this.#stage).fontFamily || "sans-serif"}`;
    const grid = { stroke: theme.color("--ct-grid"), width: 1 };
    const ticks = { show: false };
    const sizeOf = (values: string[] | null): number =>
      Math.min(64, 14 + 6.2 * Math.max(2, ...(values ?? []).map((each) => each.length)));
    const options: uPlot.Options = {
      width: Math.max(120, this.#stage.clientWidth || 320),
      height: this.#height(),
      padding: [8, 22, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: false },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [
        {
          stroke: text,
          font,
          grid: { show: false },
          ticks,
          size: 22,
          gap: 4,
          space: 56,
          incrs:
            picture.xKind === "epochs"
              ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 1e5]
              : TIME_STEPS,
          values: (_, splits, __, ___, step) =>
            splits.map((each) => (picture.xKind === "epochs" ? String(each) : axisTime(each, step))),
        },
        {
          stroke: text,
          font,
          grid,
          ticks,
          gap: 6,
          space: 30,
          size: (_, values) => sizeOf(values),
          values: (_, splits) =>
            splits.map((each, at) =>
              at === splits.length - 1
                ? `${trim(each / this.#unitSize)} ${this.#stage.dataset["unit"] ?? ""}`
                : trim(each / this.#unitSize),
            ),
        },
      ],
      series: [
        {},
        ...picture.curves.map((curve): uPlot.Series => {
          const color = theme.color(curve.token);
          return {
            stroke: color,
            width: curve.width ?? (curve.bound ? 0.75 : picture.x.length > 600 ? 1 : 1.75),
            points: { show: (plot) => (plot.data[0]?.length ?? 0) < 2, size: 6, fill: color },
            spanGaps: false,
            ...(curve.dash?.length ? { dash: curve.dash } : {}),
            ...(curve.area ? { fill: faint(color, 0.25) } : {}),
          };
        }),
      ],
      bands: (picture.bands ?? []).map(([upper, lower]) => ({
        series: [upper + 1, lower + 1] as [number, number],
        fill: faint(theme.color(picture.curves[upper]?.token ?? "--ct-co2"), 0.25),
      })),
      cursor: {
        y: false,
        points: { size: 7 },
        drag: { x: true, y: false, setScale: false },
        bind: {
          dblclick: () => () => {
            this.zoom(null);
            return null;
          },
        },
        ...(together ? { sync: { key: together, setSeries: false } } : {}),
      },
      hooks: {
        setCursor: [(plot) => this.#point(plot.cursor.idx ?? null, false)],
        setSelect: [
          (plot) => {
            if (plot.select.width < 4) return;
            const from = plot.posToVal(plot.select.left, "x");
            const to = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            this.zoom([from, to]);
          },
        ],
        drawClear: [(plot) => this.#drawMarks(plot)],
      },
    };
    this.#stage.textContent = "";
    this.#plot = new uPlot(options, this.#data(), this.#stage);
    this.#range();
  }

  /** Ends of epochs, as long as they are far enough apart to be told apart. */
  #drawMarks(plot: uPlot): void {
    const marks = this.#picture.marks ?? [];
    const { min, max } = plot.scales["x"] ?? {};
    const seen = marks.filter((mark) => mark >= (min ?? 0) && mark <= (max ?? 0));
    if (!seen.length || plot.bbox.width / seen.length < 14 * devicePixelRatio) return;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = this.#options.theme.color("--ct-mark");
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const mark of seen) {
      const x = Math.round(plot.valToPos(mark, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  #height(): number {
    return Math.max(HEIGHT_MIN, this.#options.height);
  }

  #fit(): void {
    const width = Math.floor(this.#stage.clientWidth);
    if (this.#plot && width > 0 && width !== this.#plot.width) {
      this.#plot.setSize({ width, height: this.#height() });
    }
  }

  /** One entry of the legend for each curve that is no bound. */
  #name(): void {
    const curves = this.#picture.curves;
    this.#entries = [];
    this.#legend.textContent = "";
    curves.forEach((curve, at) => {
      if (curve.bound) return;
      const value = h("span", { class: "ct-value" });
      const item = h(
        "li",
        {},
        swatch(curve.dash ?? [], curve.area ? "area" : "line"),
        h("bdi", {}, curve.label),
        value,
      );
      this.#dye(item, at);
      this.#legend.append(item);
      const bounds = curves.flatMap((each, place) => (each.bound ? [place] : []));
      this.#entries.push({ item, value, curve: at, bounds });
    });
  }

  #dye(item: HTMLElement, curve: number): void {
    item.style.setProperty("--ct-series", `var(${this.#picture.curves[curve]?.token ?? "--ct-muted"})`);
  }

  #point(index: number | null, byHand = true): void {
    if (index === this.#cursor) return;
    this.#cursor = index;
    if (byHand && this.#plot) {
      const x = index === null ? undefined : this.#picture.x[index];
      const left = x === undefined ? -10 : this.#plot.valToPos(x, "x");
      this.#plot.setCursor({ left, top: 0 });
    }
    this.#tell();
  }

  /** Values at the cursor, or the newest. */
  #tell(): void {
    const { x, unit, xKind, curves } = this.#picture;
    const at = this.#cursor !== null && this.#cursor < x.length ? this.#cursor : null;
    for (const { value, curve } of this.#entries) {
      const values = curves[curve]?.told ?? curves[curve]?.values ?? [];
      const figure = at === null ? newest(values) : (values[at] ?? null);
      say(value, withUnit(figure, unit));
    }
    const place = at === null ? undefined : x[at];
    say(
      this.#where,
      place === undefined ? "" : xKind === "time" ? `at ${clock(place)}` : `after epoch ${place}`,
    );
  }

  #key(event: KeyboardEvent): void {
    const last = this.#picture.x.length - 1;
    const from = this.#cursor ?? last + (event.key === "ArrowLeft" ? 1 : 0);
    const far = Math.max(1, Math.round(last / 20));
    const places: Record<string, number> = {
      ArrowLeft: from - (event.shiftKey ? far : 1),
      ArrowRight: from + (event.shiftKey ? far : 1),
      Home: 0,
      End: last,
    };
    const to = places[event.key];
    if (event.key === "Escape") {
      if (!this.#zoom && this.#cursor === null) return;
      this.#point(null);
      this.zoom(null);
    } else if (to !== undefined && last >= 0) {
      this.#point(Math.min(last, Math.max(0, to)));
      const values = this.#entries.map(
        ({ item, value }) => `${item.querySelector("bdi")?.textContent} ${value.textContent}`,
      );
      this.#options.speak(`${this.#where.textContent}: ${values.join(", ")}`);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

const TIME_STEPS = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400,
  172800, 604800,
];

function trim(figure: number): string {
  return digits(figure, 4)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

function newest(values: Value[]): Value {
  for (let at = values.length - 1; at >= 0; at--) {
    const value = values[at];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}
