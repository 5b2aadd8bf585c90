/**
 * Makes loloha.min.js, one file for pages without a bundler, and says what a browser downloads.
 *
 * `npm install && npm run build` after each change of `src`: a test holds the file against the sources. It
 * takes some minutes. esbuild joins the modules, terser makes their code shorter, acorn and eslint-scope
 * find what may have another name, pako packs alike under every Node.
 */

import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { gzip } from "pako";
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
const log = (code, size) => {
  writeFileSync(at("loloha.min.js"), code);
  console.log(`names: ${size} bytes`);
};

for (const entry of ["core", "explain", "index"]) {
  const [code, members] = await small(entry);
  const text = entry === "index" ? renamed(code, members, log) : code;
  if (entry === "index") writeFileSync(at("loloha.min.js"), text);
  console.log(`${entry}: ${gzip(text, { level: 9 }).length} bytes`);
}

// Says whether the file is made from these sources, where no browser has to download it.
const about = JSON.parse(readFileSync(at("package.json")));
about.built = digest.digest("hex").slice(0, 16);
writeFileSync(at("package.json"), `${JSON.stringify(about, null, 2)}\n`);
