// Builds src/index.ts and src/panel.css into the package: one ES module with uPlot inside, and one style sheet.
import { readFile } from "node:fs/promises";
import { build } from "esbuild";

const out = process.argv[2] ?? "../ct_notebook/static";

// uPlot hangs all that it can do on one object, where no bundler can tell what is never asked for. The first show of
// a panel is weighed (tests/bench), so what our curves do without is left out here.
const UNUSED = [
  "(paths.stepped = stepped);",
  "(paths.bars    = bars);",
  "(paths.spline  = monotoneCubic);",
  "uPlot.join = join;",
  "uPlot.tzDate  = tzDate;",
];
const lighter = {
  name: "lighter",
  setup({ onLoad }) {
    onLoad({ filter: /uPlot\.esm\.js$/ }, async ({ path }) => {
      let contents = await readFile(path, "utf8");
      for (const line of UNUSED) {
        if (!contents.includes(line))
          throw new Error(`uPlot has no line ${line} any more: see UNUSED in build.mjs`);
        contents = contents.replace(line, "");
      }
      return { contents };
    });
  },
};

await build({
  entryPoints: { panel: "src/index.ts" },
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "inline",
  charset: "utf8",
  plugins: [lighter],
  outdir: out,
});
await build({
  entryPoints: { panel: "src/panel.css" },
  bundle: true,
  minify: true,
  target: "es2022",
  outdir: out,
});
