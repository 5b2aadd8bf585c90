/** What settles a report, and how long a collector asks to wait: the vectors of both languages. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { retryAfter } from "../src/answer.js";
import { post } from "../src/post.js";

const vectors = JSON.parse(readFileSync(new URL("../../../tests/vectors/answers.json", import.meta.url), "utf8"));
const NO_BODY = [204, 205, 304];

test("only a receipt or a final refusal of the report itself settles it", async () => {
  const answers = vectors.filter(({ fate }) => fate);
  for (const { what, status, content_type, body, reporter, fate } of answers) {
    const bytes = Buffer.from(body, "hex");
    const headers = content_type === null ? {} : { "content-type": content_type };
    const response = new Response(NO_BODY.includes(status) ? null : bytes, { status });
    response.headers.delete("content-type");
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
    const { send } = post({ attempts: 1, clock: () => 0, fetch: async () => response });
    const enrolment = { url: "https://h.example/v1/campaigns/a", token: null };
    const { settled = false, isCounted } = await send(enrolment, JSON.stringify({ reporter }));
    const seen = settled ? (isCounted ? "counted" : "refused") : "waiting";
    assert.equal(seen, fate, what);
  }
  assert.ok(answers.length > 90);
});

test("Retry-After is digits or a date, and asks for nothing otherwise", () => {
  const asked = vectors.filter((one) => "retry_after" in one);
  for (const { retry_after, date, now, seconds } of asked) {
    assert.equal(retryAfter(retry_after, date, now), seconds, `${retry_after} ${date} ${now}`);
  }
  assert.ok(asked.length > 40);
});
