// Builds src/index.ts and src/panel.css into the package: one ES module with uPlot inside, and one style sheet.
import { build } from "esbuild";

const out = process.argv[2] ?? "../ct_notebook/static";

await build({
  entryPoints: { panel: "src/index.ts" },
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  legalComments: "inline",
  charset: "utf8",
  outdir: out,
});
await build({
  entryPoints: { panel: "src/panel.css" },
  bundle: true,
  minify: true,
  target: "es2022",
  outdir: out,
});
