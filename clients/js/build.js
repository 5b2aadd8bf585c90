/**
 * Makes loloha.min.js, one file for pages without a bundler, and says what a browser downloads.
 *
 * `npm install && npm run build` after each change of `src`: a test holds the file against the sources.
 */

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const at = (path) => new URL(path, import.meta.url).pathname;

for (const entry of ["core", "explain", "index"]) {
  const { outputFiles } = await build({
    entryPoints: [at(`src/${entry}.js`)],
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    write: false,
  });
  const [{ contents }] = outputFiles;
  if (entry === "index") writeFileSync(at("loloha.min.js"), contents);
  console.log(`${entry}: ${gzipSync(contents, { level: 9 }).length} bytes`);
}

// Says whether the file is the one that these sources give, where no browser has to download it.
const sources = readdirSync(at("src")).filter((name) => name.endsWith(".js")).sort();
const digest = createHash("sha256");
for (const name of [...sources.map((source) => `src/${source}`), "loloha.min.js"]) digest.update(readFileSync(at(name)));
const about = JSON.parse(readFileSync(at("package.json")));
about.built = digest.digest("hex").slice(0, 16);
writeFileSync(at("package.json"), `${JSON.stringify(about, null, 2)}\n`);
