// SPDX-License-Identifier: Apache-2.0
// The page of net-monitor: tables and rates from the module's events.
import { chart, connect, fill, number, onceAPicture } from "/live.js";

const element = (id) => document.getElementById(id);
const rates = chart(element("rates"), [
  { label: "bytes", scale: "bytes", side: 1, colour: "--second", unit: "B/s", filled: true },
  { label: "packets", scale: "packets", side: 3, colour: "--first", unit: "packets/s" },
  { label: "not counted", scale: "packets", side: 3, colour: "--third", unit: "packets/s" },
]);
let paused = false;
let tables;

const show = onceAPicture(() => {
  if (paused || !tables) {
    return;
  }
  const { node, place, seen, sample, counted, not_counted: apart } = tables;
  element("node").textContent = place ? `at ${node}, ${place}` : `at ${node}`;
  const samples = { 0: "none is", 1: "every one is" };
  element("sample").textContent = samples[sample] ?? `one in ${number(sample)} is; the tables have those alone`;
  const figures = {
    packets: counted.packets,
    bytes: counted.bytes,
    keys: counted.keys,
    "sampled-away": apart.sampled_away,
    "not-ip": apart.not_ip,
    "no-room": apart.no_room.packets,
    "no-room-bytes": apart.no_room.bytes,
  };
  for (const [id, value] of Object.entries(figures)) {
    element(id).textContent = number(value);
  }
  const keys = { flows: ["source", "destination", "ttl"], sources: ["source"], destinations: ["destination"], ttls: ["ttl"] };
  for (const [id, columns] of Object.entries(keys)) {
    const { rows, rest } = tables[id];
    const lines = rows.map((row) => [...columns.map((column) => String(row[column])), row.packets, row.bytes]);
    if (rest.rows > 0) {
      const others = [`${number(rest.rows)} others`, ...columns.slice(1).map(() => "")];
      lines.push([...others, rest.packets, rest.bytes]);
    }
    fill(element(id), lines);
  }
  document.title = `${number(seen)} packets`;
});

element("pause").onclick = () => {
  paused = !paused;
  rates.held = paused;
  element("pause").setAttribute("aria-pressed", String(paused));
  show();
};

connect(
  "/events",
  {
    tables(said) {
      tables = said;
      show();
    },
    rates({ at, packets, bytes, not_counted: notCounted }) {
      rates.add(at, [bytes, packets, notCounted]);
    },
  },
  element("status"),
);
