/** Addresses of campaigns: those of the golden vectors, stored as they say, and no others. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { ParameterError } from "../src/index.js";
import { addressOf } from "../src/state.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/vectors/addresses.json", import.meta.url), "utf8"));

test("every address of the vectors is taken as they say", () => {
  for (const { text, address } of vectors) {
    if (address === null) assert.throws(() => addressOf(text), ParameterError, text);
    else assert.equal(addressOf(text), address);
  }
});
