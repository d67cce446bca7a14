// Writes dist/: hubbub.mjs (an ES module), hubbub.js (a script tag, global `hubbub`), internals.mjs (for the tests).
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const common = { absWorkingDir: here, bundle: true, minify: true, target: "es2022", legalComments: "none" };
await Promise.all([
  build({ ...common, entryPoints: ["src/index.ts"], outfile: "dist/hubbub.mjs", format: "esm" }),
  build({ ...common, entryPoints: ["src/index.ts"], outfile: "dist/hubbub.js", format: "iife", globalName: "hubbub" }),
  build({ ...common, entryPoints: ["src/internals.ts"], outfile: "dist/internals.mjs", format: "esm" }),
]);
