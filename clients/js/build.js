/**
 * Makes loloha.min.js, one file for pages without a bundler, and says what a browser downloads.
 *
 * `npm install && npm run build` after each change of `src`: a test holds the file against the sources. It
 * takes some minutes. esbuild joins the modules, terser makes their code shorter, acorn and eslint-scope
 * find what may have another name.
 */

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { minify } from "terser";
import { INTERNAL } from "./internal.js";
import { renamed, withArrows } from "./names.js";

const at = (path) => new URL(path, import.meta.url).pathname;

// Declarations of one kind stand together once minified.
const oneKind = {
  name: "const as let",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/src\/\w+\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replace(/\bconst /g, "let "),
    })),
};

/** The code of an entry, and what stands for the members that only the sources know. */
async function small(entry) {
  const { outputFiles, mangleCache } = await build({
    entryPoints: [at(`src/${entry}.js`)],
    bundle: true,
    format: "esm",
    mangleProps: RegExp(`^(?:${INTERNAL.join("|")})$`),
    mangleCache: {},
    plugins: [oneKind],
    write: false,
  });
  const compress = { passes: 3, ecma: 2022, unsafe: true, unsafe_arrows: true, pure_getters: true };
  const { code } = await minify(withArrows(outputFiles[0].text), { module: true, ecma: 2022, compress });
  return [code.replace(/;$/, ""), new Set(Object.values(mangleCache))];
}

const sources = readdirSync(at("src")).filter((name) => name.endsWith(".js")).sort();
const digest = createHash("sha256");
for (const name of sources) digest.update(readFileSync(at(`src/${name}`)));
// Its licence, and what says whether it is made from these sources.
const banner = `// MIT ${digest.digest("hex").slice(0, 8)}\n`;

const log = (code, size) => {
  writeFileSync(at("loloha.min.js"), banner + code);
  console.log(`names: ${size} bytes`);
};

for (const entry of ["core", "explain", "index"]) {
  const [code, members] = await small(entry);
  const text = entry === "index" ? banner + renamed(code, members, log) : code;
  if (entry === "index") writeFileSync(at("loloha.min.js"), text);
  console.log(`${entry}: ${gzipSync(text, { level: 9 }).length} bytes`);
}
