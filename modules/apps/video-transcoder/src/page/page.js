// SPDX-License-Identifier: Apache-2.0
// The device: shows one picture after the other, and asks for others while it does.

const element = (id) => document.getElementById(id);
const form = element("quality");
const screen = element("screen");
const pen = screen.getContext("2d", { alpha: false });
const viewer = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const decoder = new TextDecoder();

// The last seconds' pictures: when they came, and their bytes.
let recent = [];
// What it wants, and since when, until a picture of it is there.
let wanted;
// Shown for who looks on: the quality of the picture on the screen, pictures so far, and how long the last change took.
const shown = { quality: "", pictures: 0, changeMs: 0, bytes: 0 };
window.shown = shown;

const say = (text) => {
  if (element("status").textContent !== text) {
    element("status").textContent = text;
  }
};

// Gives the parts of a body of several, the lines of the head and the bytes: of those that have come, the last, so that a slow device is not late.
async function* parts(body) {
  let bytes = new Uint8Array(0);
  const reader = body.getReader();
  for (;;) {
    let newest;
    for (let part = first(bytes); part; part = first(bytes)) {
      newest = part;
      bytes = bytes.subarray(part.end);
    }
    if (newest) {
      yield [newest.head, newest.bytes];
    }
    const { done, value } = await reader.read();
    if (done) {
      return;
    }
    const all = new Uint8Array(bytes.length + value.length);
    all.set(bytes);
    all.set(value, bytes.length);
    bytes = all;
  }
}

// The first part of some bytes, if it has come whole.
function first(bytes) {
  const end = headEnd(bytes);
  if (end < 0) {
    return undefined;
  }
  const head = decoder.decode(bytes.subarray(0, end));
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? -1);
  if (length < 0) {
    throw new Error("a part without a length");
  }
  const begin = end + 4;
  return bytes.length < begin + length ? undefined : { head, bytes: bytes.subarray(begin, begin + length), end: begin + length };
}

function headEnd(bytes) {
  for (let at = 0; at + 3 < bytes.length; at += 1) {
    if (bytes[at] === 13 && bytes[at + 1] === 10 && bytes[at + 2] === 13 && bytes[at + 3] === 10) {
      return at;
    }
  }
  return -1;
}

async function show(head, bytes) {
  const type = /^content-type: *(\S+)/im.exec(head)?.[1] ?? "";
  const quality = /^quality: *(\S+)/im.exec(head)?.[1] ?? "";
  const picture = await createImageBitmap(new Blob([bytes], { type }));
  if (screen.width !== picture.width || screen.height !== picture.height) {
    [screen.width, screen.height] = [picture.width, picture.height];
  }
  pen.drawImage(picture, 0, 0);
  picture.close();
  if (quality !== shown.quality) {
    shown.quality = quality;
    if (!wanted) {
      new URLSearchParams(quality).forEach((value, name) => (form.elements[name].value = value));
    }
  }
  if (wanted?.quality === quality) {
    shown.changeMs = Math.round(performance.now() - wanted.at);
    wanted = undefined;
  }
  shown.pictures += 1;
  shown.bytes += bytes.length;
  const now = performance.now();
  recent = recent.filter(([at]) => now - at < 3000);
  recent.push([now, bytes.length]);
}

function figures() {
  const now = performance.now();
  recent = recent.filter(([at]) => now - at < 3000);
  const [from] = recent[0] ?? [now];
  const seconds = Math.max(1, (now - from) / 1000);
  const bits = recent.reduce((sum, [, bytes]) => sum + 8 * bytes, 0);
  const change = shown.changeMs ? `, the last change took ${(shown.changeMs / 1000).toFixed(2)} s` : "";
  const size = `${screen.width} × ${screen.height}`;
  element("figures").textContent =
    `${size}, ${(recent.length / seconds).toFixed(1)} pictures/s, ${Math.round(bits / seconds / 1000)} kbit/s${change}`;
  if (recent.length === 0 && shown.pictures > 0) {
    say("no picture for some seconds");
  } else if (recent.length > 0) {
    say(wanted ? "changing" : "live");
  }
}

form.onchange = async () => {
  const quality = new URLSearchParams(new FormData(form));
  wanted = { quality: "", at: performance.now() };
  const mine = wanted;
  try {
    const answer = await fetch(`/quality?viewer=${viewer}&${quality}`, { method: "POST" });
    const text = (await answer.text()).trim();
    if (answer.ok) {
      mine.quality = text;
    } else {
      wanted = undefined;
      say(text);
    }
  } catch {
    wanted = undefined;
  }
};
form.onsubmit = (event) => event.preventDefault();

setInterval(figures, 500);
for (let chosen = ""; ; chosen = shown.quality) {
  try {
    const answer = await fetch(`/video?viewer=${viewer}${chosen && `&${chosen}`}`);
    if (answer.ok) {
      for await (const [head, bytes] of parts(answer.body)) {
        await show(head, bytes);
      }
    } else {
      say((await answer.text()).trim());
    }
  } catch {
    say("the node is out of reach");
  }
  await new Promise((done) => setTimeout(done, 1000));
}
