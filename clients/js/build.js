/**
 * Makes loloha.min.js, one file for pages without a bundler, and says what a browser downloads.
 *
 * `npm install && npm run build` after each change of `src`: a test holds the file against the sources.
 */

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";
import { INTERNAL } from "./internal.js";

const at = (path) => new URL(path, import.meta.url).pathname;

// Declarations of one kind stand together once minified.
const oneKind = {
  name: "const as let",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/\w+\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/\bconst /g, "let "),
    })),
};

async function small(entry) {
  const { outputFiles } = await build({
    entryPoints: [at(`src/${entry}.js`)],
    bundle: true,
    minify: true,
    format: "esm",
    mangleProps: RegExp(`^(?:${INTERNAL.join("|")})$`),
    plugins: [oneKind],
    write: false,
  });
  const compress = { passes: 3, ecma: 2022, unsafe: true, unsafe_arrows: true, pure_getters: true };
  return (await minify(outputFiles[0].text, { module: true, ecma: 2022, compress })).code;
}

const sources = readdirSync(at("src")).filter((name) => name.endsWith(".js")).sort();
const digest = createHash("sha256");
for (const name of sources) digest.update(readFileSync(at(`src/${name}`)));
const banner = `/* loloha, MIT licence; made from the sources ${digest.digest("hex").slice(0, 16)} */\n`;

for (const entry of ["index", "core", "explain"]) {
  const code = await small(entry);
  if (entry === "index") writeFileSync(at("loloha.min.js"), `${banner}${code}\n`);
  console.log(`${entry}: ${gzipSync(code, { level: 9 }).length} bytes`);
}
