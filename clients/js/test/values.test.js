/** What a user's value is to a campaign: the golden vectors of the Python suite, every edge. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { domain } from "../src/domain.js";
import { Campaign, DomainError } from "../src/index.js";
import { DOCUMENT } from "../testing/collector.js";

const vectors = JSON.parse(
  readFileSync(new URL("../../../tests/vectors/values.json", import.meta.url), "utf8"),
);

function indexOf(found, value) {
  try {
    return found.indexOfValue(value) ?? null;
  } catch (error) {
    assert.ok(error instanceof DomainError);
    return "missing";
  }
}

test("every value has the index of the vectors", () => {
  for (const { labels, other, k, texts, values } of vectors) {
    const found = domain("labels", labels, other === null ? {} : { other });
    assert.equal(found.k, k);
    for (const [v, text] of Object.entries(texts)) assert.equal(found.labelOf(Number(v)), text);
    // What has no index is `other`, the last value, which is known by its own text as well.
    const none = other === null ? null : k - 1;
    for (const [value, index] of values) {
      assert.equal(indexOf(found, value) ?? none, index ?? none, `${value} in ${JSON.stringify(labels)}`);
    }
  }
});

test("a range asks for a number of it, not for the label of a part", async () => {
  const labels = { range: [1, 100], bins: 3 };
  const campaign = await Campaign.restore({ ...DOCUMENT, labels });
  assert.throws(() => campaign.index(campaign.labels[1]), /value must be a number from 1 to 100 /);
  assert.throws(() => campaign.index(101), /value must be a number from 1 to 100 /);
  assert.throws(() => new Campaign(DOCUMENT).index("d"), /value must be a label /);
});

test("what is no value is refused, and never shown", () => {
  const found = domain("labels", ["a", "b"], {});
  for (const value of [undefined, null, NaN, "", " \t", new Date(), {}, ["a"], Symbol("a"), () => 0]) {
    assert.throws(() => found.indexOfValue(value), DomainError);
  }
  assert.equal(found.indexOfValue(Infinity), undefined);
  assert.equal(domain("labels", [7, 8], {}).indexOfValue(8n), 1);
  assert.equal(domain("labels", { range: [0, 10], bins: 10 }, {}).indexOfValue(10n), 9);
});
