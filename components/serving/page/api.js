// The server's routes, as functions. An answer that streams tells its text after every block.

export class Problem extends Error {
  constructor(status, body) {
    super(body.message || `the server answered ${status}`);
    this.status = status;
    this.candidates = body.candidates || [];
  }
}

let token = sessionStorage.getItem("token") || "";

export function unlock(given) {
  token = given;
  sessionStorage.setItem("token", given);
}

function headers(more) {
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

async function refused(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    // a proxy in between may answer with something else
  }
  return new Problem(response.status, body);
}

export async function get(path, signal) {
  const response = await fetch(path, { headers: headers({}), signal });
  if (!response.ok) throw await refused(response);
  return response.json();
}

/** Ask for an answer; `tell(text)` is called with the text so far, block by block. */
export async function ask(path, request, { signal, tell }) {
  const response = await fetch(`${path}?stream=true`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json" }),
    body: JSON.stringify(request),
    signal,
  });
  if (!response.ok) throw await refused(response);
  for await (const line of lines(response.body)) {
    const event = JSON.parse(line);
    if (event.event === "block") tell(event.text);
    else if (event.event === "problem") throw new Problem(event.status, event.problem);
    else return event;
  }
  throw new Problem(502, { message: "the answer broke off; ask again" });
}

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter((part) => part);
  }
}
