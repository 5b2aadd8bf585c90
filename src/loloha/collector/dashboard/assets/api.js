// The collector's API. Each answer is cached with its ETag: while nothing changed a poll costs a 304 and no body, and
// the same object comes back, by which panels see that they need not be drawn again.

const MOST_CACHED = 60;
const cached = new Map();

export class ApiError extends Error {
  constructor(status, detail, seconds) {
    super(detail);
    this.status = status;
    this.seconds = seconds;
  }
}

export async function get(path, query = {}) {
  const address = withQuery(path, query);
  const before = cached.get(address);
  let answer;
  try {
    answer = await fetch(address, {
      headers: before ? { "If-None-Match": before.tag } : {},
      // Ours is the only cache: the browser's would turn every 304 into a 200.
      cache: "no-store",
    });
  } catch {
    throw new ApiError(0, "The collector does not answer.", 5);
  }
  if (answer.status === 304 && before) return before.data;
  if (!answer.ok) throw await failure(answer);
  const data = await answer.json();
  cached.delete(address);
  cached.set(address, { tag: answer.headers.get("ETag") ?? "", data });
  if (cached.size > MOST_CACHED) cached.delete(cached.keys().next().value);
  return data;
}

export function withQuery(path, query) {
  const parts = [];
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) {
      if (one !== null && one !== undefined) parts.push(`${name}=${encodeURIComponent(one)}`);
    }
  }
  return parts.length ? `${path}?${parts.join("&")}` : path;
}

async function failure(answer) {
  let detail = `The collector answered ${answer.status}.`;
  try {
    const problem = await answer.json();
    detail = `${problem.title}: ${problem.detail}`;
  } catch {
    // No problem document: something else answered in its place.
  }
  return new ApiError(answer.status, detail, Number(answer.headers.get("Retry-After")) || 5);
}
