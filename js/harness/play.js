// A page without a kernel: a model that answers as the kernel would, and scenarios by ?scenario=…&theme=dark.
import panel from "../../ct_notebook/static/panel.js";

const query = new URLSearchParams(location.search);
const scenario = query.get("scenario") ?? "running";
document.body.dataset.jpThemeLight = String(query.get("theme") !== "dark");

const RUN = "4711-abc";
const device = (name, component, how) => ({ name, component, how });
const CPU = device("AMD EPYC 7763 64-Core Processor", "cpu", "model: 2 of 128 vCPUs by load");
const RAM = device("memory", "ram", "constant: 0.38 W/GB of what is allocated");
const GPU = (n) => device(`NVIDIA A100-SXM4-80GB (${n})`, "gpu", "counter: NVML energy counter");

const SCENARIOS = {
  start: { devices: [CPU, RAM], seconds: 0, epochs: 50, epoch: 40 },
  "first-epoch": { devices: [CPU, RAM], seconds: 21, epochs: 50, epoch: 40 },
  short: { devices: [CPU, RAM], seconds: 3, epochs: 6, epoch: 0.5, step: 0.25 },
  running: { devices: [GPU(0), CPU, RAM], seconds: 411, epochs: 50, epoch: 40 },
  one: { devices: [GPU(0)], seconds: 411, epochs: 50, epoch: 40 },
  "eight-gpus": {
    devices: [...Array.from({ length: 8 }, (_, n) => GPU(n)), CPU, RAM],
    seconds: 3000,
    epochs: 90,
    epoch: 200,
  },
  "fresh-eight-gpus": {
    devices: [...Array.from({ length: 8 }, (_, n) => GPU(n)), CPU, RAM],
    seconds: 0,
    epochs: 400,
    epoch: 216,
  },
  day: { devices: [GPU(0), CPU, RAM], seconds: 86_400, epochs: 400, epoch: 300, step: 60 },
  question: { devices: [GPU(0), CPU, RAM], seconds: 121, epochs: 50, epoch: 40, state: "waiting" },
  paused: { devices: [GPU(0), CPU, RAM], seconds: 211, epochs: 50, epoch: 40, state: "paused" },
  nothing: { devices: [], seconds: 211, epochs: 50, epoch: 40 },
  unknown: { devices: [CPU, RAM], seconds: 211, epochs: null, epoch: 1e9 },
  hostile: {
    devices: [device("<img src=x onerror=alert(1)>\u202e evil ".repeat(3), "gpu", "<b>bold</b>"), CPU],
    seconds: 211,
    epochs: 50,
    epoch: 40,
  },
  gone: { devices: [GPU(0), CPU, RAM], seconds: 211, epochs: 50, epoch: 40, gone: true },
  finished: { devices: [GPU(0), CPU, RAM], seconds: 2000, epochs: 50, epoch: 40, state: "finished" },
};

const chosen = SCENARIOS[scenario];
const WATTS = { gpu: 290, cpu: 38, ram: 9 };
const watts = (at, n, component) =>
  WATTS[component] *
  (1 +
    0.18 * Math.sin(at / 7 + n) +
    0.1 * Math.sin(at / 1.7 + 2 * n) +
    (at % chosen.epoch < chosen.epoch / 8 ? -0.35 : 0));

const joules = chosen.devices.map(() => 0);
let now = 0;
const G_PER_J = (143 / 3.6e6) * 1.1;

function row() {
  return [now, joules.reduce((sum, each) => sum + each, 0) * G_PER_J, ...joules];
}

function advance(step) {
  chosen.devices.forEach((each, n) => {
    joules[n] += watts(now, n, each.component) * step;
  });
  now += step;
}

const scaled = (figure, units) => {
  const [size, name] = units.find(([least]) => figure >= least) ?? units.at(-1);
  return `${(figure / size).toPrecision(3)} ${name}`;
};
const wh = (j) =>
  scaled(j / 3600, [
    [1000, "kWh"],
    [1, "Wh"],
    [0.001, "mWh"],
  ]);
const g = (x) =>
  scaled(x, [
    [1000, "kg"],
    [1, "g"],
    [0.001, "mg"],
  ]);
const hms = (s) => new Date(s * 1000).toISOString().slice(s >= 36000 ? 11 : 12, 19);

const moves = [];
const ends = [];

function status() {
  const done = Math.min(Math.floor(now / chosen.epoch), chosen.epochs ?? 0);
  const used = joules.reduce((sum, each) => sum + each, 0);
  const co2 = used * G_PER_J;
  const total = (chosen.epochs ?? 0) * chosen.epoch;
  const all = now ? (co2 * total) / now : 0;
  const powers = chosen.devices.map((each, n) => watts(now, n, each.component));
  const known = chosen.devices.length > 0;
  const state = chosen.state ?? "measuring";
  return {
    seq: Math.round(now * 10) + 1,
    state,
    pausing: false,
    stopping: false,
    elapsed_s: now,
    elapsed: hms(now),
    epochs_done: done,
    epochs: chosen.epochs,
    in_epoch: state === "measuring",
    left_s: done ? Math.max(0, total - now) : null,
    left: done ? `${Math.round((total - now) / 60)} min` : "",
    power_w: known ? powers.reduce((sum, each) => sum + each, 0) : null,
    powers_w: powers,
    power: known ? `${Math.round(powers.reduce((sum, each) => sum + each, 0))} W` : "",
    energy: known ? wh(used) : "",
    energy_range: known ? `${wh(used * 0.9)} to ${wh(used * 1.2)}` : "",
    co2: known ? g(co2) : "",
    co2_range: known ? `${g(co2 * 0.6)} to ${g(co2 * 1.7)}` : "",
    equivalent: known ? `${((co2 / 106.8) * 1000).toPrecision(2)} m by car` : "",
    prediction: done
      ? {
          after: done,
          epochs: chosen.epochs,
          co2: known ? g(all) : "",
          co2_range: known ? `${g(all * 0.85)} to ${g(all * 1.2)}` : "",
          energy: known ? wh(all / G_PER_J) : "",
          energy_range: "",
          duration: hms(total),
          duration_range: `${hms(total * 0.9)} to ${hms(total * 1.15)}`,
          equivalent: known ? `${(all / 106.8).toPrecision(2)} km by car` : "",
          co2_g: known ? [all, all * 0.85, all * 1.2] : null,
          duration_s: [total, total * 0.9, total * 1.15],
        }
      : null,
    question: state === "waiting" ? { token: "t0", left_s: 587, default: "continue", about: "" } : null,
    message: "",
  };
}

const rows = [];
rows.push(row());
for (let at = 0, step = chosen.step ?? 1; at < chosen.seconds; at += step) {
  advance(step);
  rows.push(row());
  const done = Math.floor(now / chosen.epoch);
  if (done > ends.length && (chosen.epochs ?? 0) >= done && chosen.devices.length) {
    ends.push(done * chosen.epoch);
    const all = status().prediction?.co2_g?.[0] ?? 0;
    const spread = 0.25 / Math.sqrt(done);
    moves.push([done, all * (1 + 0.2 / done), all * (1 - spread), all * (1 + 0.2 / done + spread)]);
  }
}

const listeners = {};
const sent = [];
window.sent = sent;
const model = {
  get: () => ({
    schema: 1,
    facts: {
      run: RUN,
      devices: chosen.devices,
      place: "Denmark",
      place_how: "time zone Europe/Copenhagen",
      intensity: "143 g CO2eq/kWh (2024, lifecycle)",
      source: "Ember and Energy Institute, by Our World in Data, CC BY 4.0",
      is_fallback: scenario === "unknown",
      pue: "1.1 (Google Cloud fleet, 2024)",
      unmeasured: chosen.devices.includes(CPU)
        ? [
            {
              what: "CPU package (RAPL)",
              why: "permission denied",
              remedy: "sudo chmod -R a+r /sys/class/powercap",
            },
          ]
        : [],
      notes: [],
      log: "/home/me/logs/4711.282997_2026-12-01T120001Z_carbontracker.log",
    },
    status: status(),
    epoch_ends: ends,
    moves,
    curves: {
      rows: rows.length,
      columns: 2 + chosen.devices.length,
      data: new DataView(new Float32Array(rows.flat()).buffer),
    },
  }),
  on: (event, callback) => {
    listeners[event] = [...(listeners[event] ?? []), callback];
  },
  off: (event, callback) => {
    listeners[event] = (listeners[event] ?? []).filter((each) => each !== callback);
  },
  send: (content) => sent.push(content),
};
const emit = (event, ...parts) => {
  for (const callback of listeners[event] ?? []) callback(...parts);
};
window.model = model;
window.tick = (step = 1) => {
  advance(step);
  emit("msg:custom", { type: "tick", run: RUN, status: status(), epoch_ends: [], moves: [] }, [
    new DataView(new Float32Array(row()).buffer),
  ]);
};

panel.initialize({ model });
window.open_panel = (el) => panel.render({ model, el });
window.close_panel = window.open_panel(document.getElementById("place"));
if (chosen.gone) emit("comm_live_update");
else if (query.has("live")) setInterval(() => window.tick(1), 1000);
document.body.dataset.ready = "true";
