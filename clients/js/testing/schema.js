/** As much of JSON Schema as the shipped schemas use. Whatever else they come to use is refused. */

import { readFileSync } from "node:fs";

const FOLDER = new URL("../../../src/loloha/conform/schema/", import.meta.url);

export const schema = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));

const isObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
const TYPES = {
  object: isObject,
  array: Array.isArray,
  string: (x) => typeof x === "string",
  integer: (x) => Number.isInteger(x) || typeof x === "bigint",
  number: (x) => typeof x === "number",
  null: (x) => x === null,
};
const RULES = {
  type: (x, types) => [types].flat().some((type) => TYPES[type](x)),
  const: (x, one) => x === one,
  enum: (x, all) => all.includes(x),
  minimum: (x, least) => x >= least,
  maximum: (x, most) => x <= most,
  minLength: (x, least) => [...x].length >= least,
  maxLength: (x, most) => [...x].length <= most,
  pattern: (x, pattern) => RegExp(pattern, "u").test(x),
  minItems: (x, least) => x.length >= least,
  maxItems: (x, most) => x.length <= most,
  items: (x, rules) => x.every((item) => isValid(item, rules)),
  prefixItems: (x, all) => all.every((rules, i) => i >= x.length || isValid(x[i], rules)),
  required: (x, names) => names.every((name) => Object.hasOwn(x, name)),
  properties: (x, all) => Object.keys(all).every((name) => !Object.hasOwn(x, name) || isValid(x[name], all[name])),
  additionalProperties: (x, allowed, { properties }) => allowed || Object.keys(x).every((name) => name in properties),
  $ref: (x, id) => isValid(x, schema(id.split(":").at(-1))),
  oneOf: (x, all) => all.filter((rules) => isValid(x, rules)).length === 1,
};
const SAID = ["$schema", "$id", "title", "description", "default"];

export function isValid(x, rules) {
  // A rule about a type says nothing about others; `type` comes first where it matters.
  const { type, ...others } = rules;
  if (type !== undefined && !RULES.type(x, type)) return false;
  return Object.entries(others).every(([name, value]) => {
    if (SAID.includes(name)) return true;
    if (!RULES[name]) throw new Error(`no rule ${name}`);
    return RULES[name](x, value, rules);
  });
}
